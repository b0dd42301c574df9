// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stalekind makes kinds stale for the tests of controllers, without waiting for a clock and without an API
// server.
package stalekind

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	k8stesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/masthead-dev/masthead/internal/test/fakefleet"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// Watcher returns a Watcher of a cluster that has no objects of some kinds, and has refused for a while to list them.
// It runs until the test ends.
func Watcher(t *testing.T, kinds ...kindwatch.Kind) *kindwatch.Watcher {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	listKinds := map[schema.GroupVersionResource]string{}
	for _, k := range kinds {
		listKinds[k.GroupVersionResource()] = k.Kind + "List"
	}
	objects, metadata := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(scheme, listKinds), metadatafake.NewSimpleMetadataClient(scheme)
	var failing atomic.Bool
	refuse := func(k8stesting.Action) (bool, runtime.Object, error) {
		return failing.Load(), nil, apierrors.NewInternalError(context.DeadlineExceeded)
	}
	objects.PrependReactor("list", "*", refuse)
	metadata.PrependReactor("list", "*", refuse)

	clock := clocktesting.NewFakeClock(time.Now())
	w, err := kindwatch.New(kindwatch.Options{
		Client: fakefleet.Objects{Interface: objects}, MetadataClient: fakefleet.Metadata{Interface: metadata},
		Handler: func(kindwatch.Event) {}, Clock: clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Set("test", kinds...)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.Start(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	until := func(state kindwatch.State, meanwhile func()) {
		t.Helper()
		err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			meanwhile()
			for _, k := range kinds {
				if s, _ := w.State(k); s != state {
					return false, nil
				}
			}
			return true, nil
		})
		if err != nil {
			t.Fatalf("the kinds do not become %s: %v", state, err)
		}
	}
	until(kindwatch.StateSynced, func() {})
	failing.Store(true)
	w.Relist(func(schema.GroupKind) bool { return true })
	until(kindwatch.StateStale, func() { clock.Step(kindwatch.DefaultStaleAfter) })
	return w
}
