// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package dynamicclient

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	restwatch "k8s.io/client-go/rest/watch"
	"k8s.io/client-go/util/flowcontrol"
)

// Streamer begins watches whose events the caller reads, in its own goroutine and with the transport's errors.
type Streamer interface {
	// Stream begins a watch of a resource in a namespace, or in all if it is empty. Events are read from the decoder until
	// it returns an error: io.EOF, or that of the transport. The end of ctx ends it, too. It must be closed.
	Stream(ctx context.Context, resource schema.GroupVersionResource, namespace string, o metav1.ListOptions) (watch.Decoder, error)
}

// streamer begins watches in JSON.
type streamer struct {
	rest       rest.Interface
	accept     string
	negotiator runtime.ClientNegotiator
}

// newStreamer returns a Streamer with the codecs of config.
func newStreamer(config *rest.Config, httpClient *http.Client, accept string) (streamer, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion = nil
	// Requests use absolute paths, but the REST client requires a value.
	config.APIPath = "/unused"
	client, err := rest.UnversionedRESTClientForConfigAndClient(config, httpClient)
	if err != nil {
		return streamer{}, fmt.Errorf("cannot create a REST client: %w", err)
	}
	negotiator := runtime.NewClientNegotiator(config.NegotiatedSerializer, schema.GroupVersion{})
	return streamer{rest: client, accept: accept, negotiator: negotiator}, nil
}

// Stream implements Streamer.
func (s streamer) Stream(
	ctx context.Context, resource schema.GroupVersionResource, namespace string, o metav1.ListOptions,
) (watch.Decoder, error) {
	objects, events, framer, err := s.negotiator.StreamDecoder(runtime.ContentTypeJSON, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot decode events: %w", err)
	}
	o.Watch = true
	root := []string{"apis", resource.Group}
	if resource.Group == "" {
		root = []string{"api"}
	}
	body, err := s.rest.Get().AbsPath(append(root, resource.Version)...).
		NamespaceIfScoped(namespace, namespace != "").Resource(resource.Resource).
		SetHeader("Accept", s.accept).
		Throttle(flowcontrol.NewFakeAlwaysRateLimiter()). // As in client-go, no rate holds back a watch.
		MaxRetries(0).                                    // The caller backs off.
		SpecificallyVersionedParams(&o, scheme.ParameterCodec, schema.GroupVersion{Version: "v1"}).
		Stream(ctx)
	if err != nil {
		return nil, err //nolint:wrapcheck // As from other methods of these clients.
	}
	return restwatch.NewDecoder(streaming.NewDecoder(framer.NewFrameReader(body), events), objects), nil
}
