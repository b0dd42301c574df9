// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/masthead-dev/masthead/pkg/dynamicclient"
)

// shared returns a Shared, and the kind of the ConfigMaps with a label of the test's own.
func shared(t *testing.T, cfg *rest.Config, label string) (*Shared, Kind) {
	t.Helper()
	dyn, meta := clients(t, cfg)
	s, err := NewShared(Options{Client: dyn, MetadataClient: meta, MinBackoff: 10 * time.Millisecond, MaxBackoff: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	kind := configMaps
	kind.FieldSelector, kind.LabelSelector, kind.MetadataOnly, kind.Shared = "", "shared="+label, true, true
	return s, kind
}

func through(s *Shared) func(*Options) { return func(o *Options) { o.Shared = s } }

func labelled(kind Kind, name string) *corev1.ConfigMap {
	_, label, _ := strings.Cut(kind.LabelSelector, "=")
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"shared": label}}}
}

func reported(r *recorder, name string, want ...EventType) func() error {
	return func() error {
		if diff := cmp.Diff(want, r.seen(name)); diff != "" {
			return fmt.Errorf("what was reported of %s (-want +got):\n%s", name, diff)
		}
		return nil
	}
}

// states are the states that were reported.
func (r *recorder) states() []State {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []State
	for _, e := range r.events {
		if e.Type == StateChanged {
			out = append(out, e.State)
		}
	}
	return out
}

// TestASharedKindIsWatchedOnce has three Watchers of different sorts ask for one kind.
func TestASharedKindIsWatchedOnce(t *testing.T) {
	c := testClient(t)
	var watches atomic.Int32
	counted := intercepted(config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if req.URL.Query().Get("labelSelector") == "shared=once" && req.URL.Query().Has("watch") {
			watches.Add(1)
		}
		return next.RoundTrip(req)
	})
	s, kind := shared(t, counted, "once")
	before := labelled(kind, "shared-before")
	if err := c.Create(t.Context(), before); err != nil {
		t.Fatal(err)
	}

	var first, second, late recorder
	one, endOne := start(t, counted, first.handle, through(s))
	two, _ := start(t, counted, second.handle, through(s), func(o *Options) { o.Reduce = reduceToNote })
	one.Set("a", kind)
	one.Set("b", kind)
	two.Set("a", kind)
	for who, r := range map[string]*recorder{"first": &first, "second": &second} {
		eventually(t, who+" receives what there is", reported(r, before.Name, Added))
		eventually(t, who+" learns that this is all", func() error {
			if diff := cmp.Diff([]State{StateSynced}, r.states()); diff != "" {
				return fmt.Errorf("states (-want +got):\n%s", diff)
			}
			return nil
		})
	}
	if got, err := two.Get(kind, key(before.Name)); err != nil || got == nil {
		t.Errorf("want a Watcher with Reduce to get the object of a shared kind, got %v (%v)", got, err)
	}

	hold := make(chan struct{})
	three, _ := start(t, counted, func(e Event) { <-hold; late.handle(e) }, through(s))
	three.Set("a", kind)
	impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := three.WaitForSync(impatient); err == nil {
		t.Error("want WaitForSync to wait until the Watcher has the state")
	}
	close(hold)
	if err := three.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a late Watcher receives what there is", reported(&late, before.Name, Added))
	late.mu.Lock()
	if !late.events[0].Initial {
		t.Error("want what was there before to be initial")
	}
	late.mu.Unlock()

	endOne()
	after := labelled(kind, "shared-after")
	if err := c.Create(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	for who, r := range map[string]*recorder{"second": &second, "late": &late} {
		eventually(t, who+" receives what comes", reported(r, after.Name, Added))
		eventually(t, who+" receives what goes", reported(r, before.Name, Added, Deleted))
	}
	if got := first.seen(after.Name); got != nil {
		t.Errorf("want no event for a Watcher that has ended, got %v", got)
	}
	if got := watches.Load(); got != 1 {
		t.Errorf("want one watch for all of them, got %d", got)
	}

	two.Release("a")
	three.Release("a")
	eventually(t, "no Watcher has the kind any more", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.kinds) != 0 {
			return fmt.Errorf("got %d kinds", len(s.kinds))
		}
		return nil
	})
	three.Set("a", kind)
	eventually(t, "it starts again", has(three, kind, after.Name))
	if got := watches.Load(); got != 2 {
		t.Errorf("want one more watch, got %d", got-1)
	}
}

// TestAFollowerReceivesAStateOnce has it catch up with a state that the others receive right after.
func TestAFollowerReceivesAStateOnce(t *testing.T) {
	s, err := NewShared(Options{Client: struct{ dynamicclient.Objects }{}})
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{}
	f := s.join(configMaps, r.handle)
	f.running = true
	f.watch.setState(StateNotServed, "")
	f.catchUp()
	f.watch.notify(Event{Type: StateChanged, Kind: configMaps, State: StateNotServed})
	f.watch.notify(Event{Type: StateChanged, Kind: configMaps, State: StateSyncing})
	f.watch.notify(Event{Type: StateChanged, Kind: configMaps, State: StateNotServed})
	if diff := cmp.Diff([]State{StateNotServed, StateSyncing, StateNotServed}, r.states()); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
}

func TestASharedKindThatIsNotServed(t *testing.T) {
	c := testClient(t)
	s, _ := shared(t, config, "none")
	kind, crd := widgets(t, "sharedunserved")
	kind.Shared = true
	var first, late recorder
	one, _ := start(t, config, first.handle, through(s))
	one.Set("a", kind)
	eventually(t, "parked", inState(one, kind, StateNotServed))
	two, _ := start(t, config, late.handle, through(s))
	two.Set("a", kind)
	eventually(t, "a late Watcher receives the state", func() error {
		if diff := cmp.Diff([]State{StateNotServed}, late.states()); diff != "" {
			return fmt.Errorf("states (-want +got):\n%s", diff)
		}
		return nil
	})
	if err := c.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	createWhenServed(t, c, widget(kind, "shared-widget"))
	two.Retry(kind.GroupResource())
	eventually(t, "the first receives the object once the kind is served", reported(&first, "shared-widget", Added))
	eventually(t, "and the other", reported(&late, "shared-widget", Added))
}

// TestAWatcherThatHasEndedFollowsNothing has a controller request a kind of a cluster that was removed.
func TestAWatcherThatHasEndedFollowsNothing(t *testing.T) {
	s, kind := shared(t, config, "ended")
	w, end := start(t, config, func(Event) {}, through(s))
	end()
	w.Set("a", kind)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kinds) != 0 {
		t.Error("want nothing to be watched for a Watcher that has ended")
	}
}

// TestWaitForSyncDoesNotWaitForReleasedKinds is for a controller that waits for all of its kinds, and releases one
// meanwhile.
func TestWaitForSyncDoesNotWaitForReleasedKinds(t *testing.T) {
	arrived, hang := make(chan struct{}, 10), make(chan struct{})
	slow := intercepted(config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if req.URL.Query().Get("labelSelector") == "shared=slow" {
			arrived <- struct{}{}
			select {
			case <-hang:
			case <-req.Context().Done():
				return nil, req.Context().Err()
			}
		}
		return next.RoundTrip(req)
	})
	defer close(hang)
	s, kind := shared(t, slow, "slow")
	one, _ := start(t, slow, func(Event) {}, through(s))
	other, _ := start(t, slow, func(Event) {}, through(s))
	one.Set("a", kind)
	other.Set("a", kind)
	<-arrived
	waited := make(chan error, 1)
	go func() { waited <- one.WaitForSync(t.Context()) }()
	select {
	case err := <-waited:
		t.Fatalf("want to wait for a kind that is not known, got %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	one.Release("a")
	if err := <-waited; err != nil {
		t.Errorf("want the wait to end with what was waited for, got %v", err)
	}
}

// TestAWatcherReceivesNothingBeforeItIsStarted is for one that requests a kind that others have watched for long.
func TestAWatcherReceivesNothingBeforeItIsStarted(t *testing.T) {
	c := testClient(t)
	s, kind := shared(t, config, "unstarted")
	if err := c.Create(t.Context(), labelled(kind, "shared-unstarted")); err != nil {
		t.Fatal(err)
	}
	var early recorder
	w := idle(t, through(s), func(o *Options) { o.Handler = early.handle })
	w.Set("a", kind)
	one, _ := start(t, config, func(Event) {}, through(s))
	one.Set("a", kind)
	eventually(t, "synced", has(one, kind, "shared-unstarted"))
	other := labelled(kind, "shared-unstarted-later")
	if err := c.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	eventually(t, "followed", has(one, kind, other.Name))
	if got := early.len(); got != 0 {
		t.Errorf("want no event before the start, got %d", got)
	}
	go func() { _ = w.Start(t.Context()) }()
	eventually(t, "reported at the start", reported(&early, "shared-unstarted", Added))
	eventually(t, "reported at the start", reported(&early, other.Name, Added))
}

// TestSharedKindsComeAndGo has Watchers that come, ask from their handlers too, and go, and looks whether anything is
// left.
func TestSharedKindsComeAndGo(t *testing.T) {
	c := testClient(t)
	eventually(t, "the tests before have ended", settles(0))
	s, kind := shared(t, config, "churn")
	if err := c.Create(t.Context(), labelled(kind, "shared-churn")); err != nil {
		t.Fatal(err)
	}
	other := kind
	other.LabelSelector = "shared=churn,other"
	var running sync.WaitGroup
	for n := range 6 {
		running.Go(func() {
			random := rand.New(rand.NewPCG(11, uint64(n)))
			for range 15 {
				var w *Watcher
				var known atomic.Bool
				var events atomic.Int32
				ready := make(chan struct{})
				w, stop := start(t, config, func(e Event) {
					<-ready
					known.Store(known.Load() || e.Kind == kind && e.Type == StateChanged && e.State == StateSynced)
					if n := events.Add(1); n < 6 {
						w.Set("handler", []Kind{kind, other}[n%2])
					}
				}, through(s))
				close(ready)
				w.Set("a", kind)
				if random.IntN(3) > 0 {
					eventually(t, "the state is reported", func() error {
						if !known.Load() {
							return fmt.Errorf("worker %d did not receive the state", n)
						}
						return nil
					})
				}
				w.Release("a")
				stop()
			}
		})
	}
	running.Wait()
	eventually(t, "nothing is left", settles(0))
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kinds) != 0 {
		t.Errorf("want no kind to be left, got %d", len(s.kinds))
	}
}
