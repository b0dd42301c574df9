// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fakefleet

import (
	"context"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
)

// Objects makes a kindwatch.Watcher use a fake of client-go, which refuses to stream lists as old API servers do.
type Objects struct{ dynamic.Interface }

// Metadata is Objects for metadata.
type Metadata struct{ metadata.Interface }

// Stream implements dynamicclient.Streamer.
func (c Objects) Stream(ctx context.Context, resource schema.GroupVersionResource, namespace string, o metav1.ListOptions) (watch.Decoder, error) {
	return stream(ctx, c.Resource(resource).Namespace(namespace).Watch, o)
}

// Stream implements dynamicclient.Streamer.
func (c Metadata) Stream(ctx context.Context, resource schema.GroupVersionResource, namespace string, o metav1.ListOptions) (watch.Decoder, error) {
	return stream(ctx, c.Resource(resource).Namespace(namespace).Watch, o)
}

func stream(
	ctx context.Context, begin func(context.Context, metav1.ListOptions) (watch.Interface, error), o metav1.ListOptions,
) (watch.Decoder, error) {
	if o.SendInitialEvents != nil {
		return nil, apierrors.NewBadRequest("sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")
	}
	w, err := begin(ctx, o)
	if err != nil {
		return nil, err
	}
	return decoder{w, ctx.Done()}, nil
}

type decoder struct {
	watch watch.Interface
	done  <-chan struct{}
}

// Decode implements watch.Decoder.
func (d decoder) Decode() (watch.EventType, runtime.Object, error) {
	select {
	case <-d.done:
	case e, ok := <-d.watch.ResultChan():
		if ok {
			return e.Type, e.Object, nil
		}
	}
	return "", nil, io.EOF
}

// Close implements watch.Decoder.
func (d decoder) Close() { d.watch.Stop() }
