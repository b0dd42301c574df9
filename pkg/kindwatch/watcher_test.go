// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/pkg/dynamicclient"
)

func TestObjectsAreFollowedAndTrimmed(t *testing.T) {
	c := testClient(t)
	before := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "followed-before",
		Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "example.org/note": "kept"},
	}}
	if err := c.Create(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	r := &recorder{}
	w, _ := start(t, config, r.handle)
	if _, err := w.Get(configMaps, key("x")); !errors.Is(err, ErrNotWatched) {
		t.Errorf("want ErrNotWatched for a kind that is not requested, got %v", err)
	}
	w.Set("test", configMaps)
	if err := w.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := w.Get(configMaps, key("followed-before"))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.GetManagedFields()) != 0 {
		t.Error("want no managedFields")
	}
	if diff := cmp.Diff(map[string]string{"example.org/note": "kept"}, got.GetAnnotations()); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}

	after := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "followed-after"}}
	if err := c.Create(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a new object is known", has(w, configMaps, "followed-after"))
	after.Data = map[string]string{"a": "b"}
	if err := c.Update(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a deleted object is gone", hasNot(w, configMaps, "followed-after"))
	eventually(t, "all changes are reported in order", func() error {
		if diff := cmp.Diff([]EventType{Added, Updated, Deleted}, r.seen("followed-after")); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Type == Added && e.Initial != (e.Object.GetName() != "followed-after") {
			t.Errorf("want only what the first list brought to be initial, got %v for %s", e.Initial, e.Object.GetName())
		}
	}
}

func TestMetadataOnlyWithSelectors(t *testing.T) {
	c := testClient(t)
	for name, secretType := range map[string]corev1.SecretType{"chosen": "example.org/chosen", "other": "example.org/other"} {
		s := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "y"},
			}},
			Type: secretType, Data: map[string][]byte{"password": []byte("secret")},
		}
		if err := c.Create(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	kind := Kind{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Secret"), Resource: "secrets",
		MetadataOnly: true, FieldSelector: "type=example.org/chosen",
	}
	w, _ := start(t, config, func(Event) {})
	w.Set("test", kind)
	eventually(t, "the chosen Secret is known", has(w, kind, "chosen"))
	all, err := w.List(kind)
	if err != nil || len(all) != 1 {
		t.Fatalf("want one Secret, got %v (%v)", all, err)
	}
	got := all[0].Object()
	if _, ok := got.Object["data"]; ok {
		t.Error("want no data")
	}
	if got.GroupVersionKind() != kind.GroupVersionKind || len(got.GetOwnerReferences()) != 1 {
		t.Errorf("want kind and metadata, got %v", got.Object)
	}
}

func TestKindThatIsNotServed(t *testing.T) {
	c := testClient(t)
	kind, crd := widgets(t, "unserved")
	r := &recorder{}
	// A back-off that never ends, so that only Retry can help.
	w, _ := start(t, config, r.handle, func(o *Options) { o.Clock = clocktesting.NewFakeClock(time.Now()) })
	w.Set("test", kind, configMaps)
	eventually(t, "the kind is parked", inState(w, kind, StateNotServed))
	eventually(t, "the other kind does not mind", inState(w, configMaps, StateSynced))
	if _, err := w.Get(kind, key("a")); !errors.Is(err, ErrNotSynced) {
		t.Errorf("want ErrNotSynced, got %v", err)
	}
	if _, err := w.List(kind); !errors.Is(err, ErrNotSynced) {
		t.Errorf("want ErrNotSynced, got %v", err)
	}
	if err := w.WaitForSync(t.Context()); err != nil {
		t.Errorf("want a parked kind not to keep anybody waiting, got %v", err)
	}

	if err := c.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	createWhenServed(t, c, widget(kind, "a"))
	eventually(t, "a retry wakes it", func() error {
		w.Retry(kind.GroupResource())
		return has(w, kind, "a")()
	})
}

func TestKindThatStopsBeingServedLosesNoObject(t *testing.T) {
	c := testClient(t)
	kind, crd := widgets(t, "switched")
	crd.Spec.Versions = append(crd.Spec.Versions, *crd.Spec.Versions[0].DeepCopy())
	crd.Spec.Versions[1].Name, crd.Spec.Versions[1].Storage = "v2", false
	if err := c.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	createWhenServed(t, c, widget(kind, "stays"))
	createWhenServed(t, c, widget(kind, "goes"))
	r := &recorder{}
	w, _ := start(t, config, r.handle, func(o *Options) { o.MinBackoff, o.MaxBackoff = 20*time.Millisecond, 50*time.Millisecond })
	w.Set("test", kind)
	eventually(t, "the objects are known", has(w, kind, "goes"))

	serve := func(served bool) {
		t.Helper()
		eventually(t, "switch the version", func() error {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
				return err
			}
			crd.Spec.Versions[0].Served = served
			return c.Update(t.Context(), crd)
		})
	}
	serve(false)
	eventually(t, "the kind is not served", inState(w, kind, StateNotServed))
	if _, err := w.Get(kind, key("stays")); !errors.Is(err, ErrNotSynced) {
		t.Errorf("want ErrNotSynced rather than an old object or NotFound, got %v", err)
	}
	if got := r.seen("stays"); slices.Contains(got, Deleted) {
		t.Errorf("want no deletion to be reported because a kind is not served, got %v", got)
	}
	v2 := widget(kind, "goes")
	v2.SetAPIVersion(kind.Group + "/v2")
	eventually(t, "delete an object meanwhile", func() error { return client.IgnoreNotFound(c.Delete(t.Context(), v2)) })

	serve(true)
	eventually(t, "the kind is served again", inState(w, kind, StateSynced))
	eventually(t, "the object that went meanwhile is reported", func() error {
		if got := r.seen("goes"); got[len(got)-1] != Deleted {
			return fmt.Errorf("got %v", got)
		}
		return nil
	})
	if got := r.seen("stays"); slices.Contains(got, Deleted) {
		t.Errorf("want the object that stayed not to be reported as deleted, got %v", got)
	}
	if err := has(w, kind, "stays")(); err != nil {
		t.Error(err)
	}
}

func TestDefinitionThatIsDeletedReportsItsObjectsOnce(t *testing.T) {
	c := testClient(t)
	kind, crd := widgets(t, "removed")
	if err := c.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	createWhenServed(t, c, widget(kind, "a"))
	r := &recorder{}
	w, _ := start(t, config, r.handle, func(o *Options) { o.MinBackoff, o.MaxBackoff = 20*time.Millisecond, 50*time.Millisecond })
	w.Set("test", kind)
	eventually(t, "the object is known", has(w, kind, "a"))
	undefine(t, c, crd)
	eventually(t, "the kind is not served", inState(w, kind, StateNotServed))
	_, crd = widgets(t, "removed")
	eventually(t, "the definition comes back", func() error { return c.Create(t.Context(), crd.DeepCopy()) })
	eventually(t, "the kind is watched again", inState(w, kind, StateSynced))
	deleted := 0
	for _, e := range r.seen("a") {
		if e == Deleted {
			deleted++
		}
	}
	if deleted != 1 {
		t.Errorf("want one deletion, got %d in %v", deleted, r.seen("a"))
	}
}

func TestForbiddenKind(t *testing.T) {
	cfg := rest.CopyConfig(config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "unprivileged"}
	w, _ := start(t, cfg, func(Event) {})
	w.Set("test", configMaps)
	eventually(t, "the state says so", inState(w, configMaps, StateForbidden))
	_, message := w.State(configMaps)
	if want := "the cluster does not let Masthead list and watch configmaps.v1"; message != want {
		t.Errorf("want the message %q, got %q", want, message)
	}
	if _, err := w.Get(configMaps, key("x")); !errors.Is(err, ErrNotSynced) {
		t.Errorf("want ErrNotSynced, got %v", err)
	}
}

func TestOwnersShareAKind(t *testing.T) {
	var mu sync.Mutex
	watches := 0
	cfg := rest.CopyConfig(config)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if strings.Contains(req.URL.RawQuery, "watch=true") {
				mu.Lock()
				watches++
				mu.Unlock()
			}
			return next.RoundTrip(req)
		})
	})
	r := &recorder{}
	w, _ := start(t, cfg, r.handle)
	w.Set("one", configMaps)
	eventually(t, "synced", inState(w, configMaps, StateSynced))
	w.Set("two", configMaps)
	w.Set("one")
	if state, _ := w.State(configMaps); state != StateSynced {
		t.Errorf("want the watch of a kind that still has an owner to continue, got %s", state)
	}
	mu.Lock()
	if watches != 1 {
		t.Errorf("want one watch, got %d", watches)
	}
	mu.Unlock()
	w.Set("two")
	if state, _ := w.State(configMaps); state != StateUnwatched {
		t.Errorf("want a kind without an owner to be dropped, got %s", state)
	}
	before := r.len()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "unwatched"}}
	if err := testClient(t).Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	w.Set("three", configMaps)
	eventually(t, "a kind can come back", has(w, configMaps, "unwatched"))
	eventually(t, "its objects are reported", func() error {
		if got := r.seen("unwatched"); len(got) == 0 {
			return fmt.Errorf("nothing after %d events", before)
		}
		return nil
	})
	if got := r.seen("unwatched"); len(got) != 1 || got[0] != Added {
		t.Errorf("want the object to be reported once, by the new watch, got %v after %d events", got, before)
	}
}

func TestObserveBridgesTheTimeUntilTheWatchCatchesUp(t *testing.T) {
	c := testClient(t)
	kind, crd := widgets(t, "observed")
	if err := c.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	createWhenServed(t, c, widget(kind, "first"))
	r := &recorder{}
	// The watch is held up in the handler, so that the store stays behind.
	hold := make(chan struct{})
	var once sync.Once
	handle := func(e Event) {
		r.handle(e)
		if e.Object != nil && e.Object.GetName() == "blocker" {
			once.Do(func() { <-hold })
		}
	}
	w, _ := start(t, config, handle)
	w.Set("test", kind)
	eventually(t, "synced", has(w, kind, "first"))
	if err := c.Create(t.Context(), widget(kind, "blocker")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the watch is held up", has(w, kind, "blocker"))

	mine := widget(kind, "mine")
	if err := c.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if err := hasNot(w, kind, "mine")(); err != nil {
		t.Fatalf("want the store to be behind: %v", err)
	}
	w.Observe(kind, objectKey(mine), mine.DeepCopy())
	if err := has(w, kind, "mine")(); err != nil {
		t.Errorf("want what was observed: %v", err)
	}
	if l, err := w.List(kind); err != nil || len(l) != 3 {
		t.Errorf("want the list to have it, too, got %d (%v)", len(l), err)
	}
	// It is deleted before the watch has heard of it.
	if err := c.Delete(t.Context(), mine.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	close(hold)
	eventually(t, "the watch catches up", hasNot(w, kind, "mine"))
	w.Observe(kind, objectKey(mine), mine.DeepCopy())
	if err := hasNot(w, kind, "mine")(); err != nil {
		t.Errorf("want an answer that arrives after the object is gone not to bring it back: %v", err)
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	// Connections stay open for a while after their last use, so the transport is closed, too.
	transport, err := rest.TransportFor(rest.CopyConfig(config))
	if err != nil {
		t.Fatal(err)
	}
	dyn, err := dynamicclient.New(config, &http.Client{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	ignore := goleak.IgnoreCurrent()
	parked, _ := widgets(t, "never")
	for range 20 {
		w, err := New(Options{Client: dyn, Handler: func(Event) {}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Start(ctx) }()
		for range 10 {
			w.Set("one", configMaps, parked)
			w.Set("two", parked)
			w.Set("one")
			w.Set("two")
		}
		w.Set("one", configMaps, parked)
		if err := w.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if closer, ok := transport.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
	// What remains are the goroutines of the one HTTP/2 connection, which client-go shares and never closes.
	goleak.VerifyNone(t, ignore,
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*ClientConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http/internal/http2.(*ClientConn).readLoop"),
	)
}

func TestManyAtOnce(t *testing.T) {
	w, _ := start(t, config, func(Event) {})
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			owner := fmt.Sprint(i)
			for range 50 {
				w.Set(owner, configMaps)
				_, _ = w.Get(configMaps, key("x"))
				_, _ = w.List(configMaps)
				w.Retry(configMaps.GroupResource())
				w.State(configMaps)
				w.Set(owner)
			}
		})
	}
	running.Wait()
	w.Set("last", configMaps)
	eventually(t, "synced in the end", inState(w, configMaps, StateSynced))
}

func TestHandlerMayChangeTheKinds(t *testing.T) {
	var w *Watcher
	ready, changed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w, _ = start(t, config, func(e Event) {
		<-ready
		if e.Type == StateChanged && e.State == StateSynced {
			once.Do(func() { w.Set("test"); close(changed) })
		}
	})
	close(ready)
	w.Set("test", configMaps)
	select {
	case <-changed:
	case <-time.After(2 * time.Minute):
		t.Fatal("want a handler to be able to stop its own kind")
	}
}
