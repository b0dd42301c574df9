// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/masthead-dev/masthead/pkg/limits"
)

// visitors acquire places and stay until the test makes them leave.
type visitors struct {
	places *limits.Semaphore[any]
	clock  clock.Clock

	mu     sync.Mutex
	inside []string
	leave  map[string]func()
}

// queue lets a visitor enter, and returns when it waits or is inside.
func (v *visitors) queue(t *testing.T, party, name string) {
	t.Helper()
	before := v.known()
	go func() {
		leave := acquireList(t.Context(), v.places, party, v.clock)
		v.mu.Lock()
		defer v.mu.Unlock()
		if leave != nil {
			v.inside = append(v.inside, name)
			v.leave[name] = leave
		}
	}()
	eventually(t, name+" is in the queue or inside", func() error {
		if v.known() == before {
			return errors.New("not yet")
		}
		return nil
	})
}

// known is how many visitors wait or have been let in.
func (v *visitors) known() int {
	_, waiting, _ := v.places.Usage()
	v.mu.Lock()
	defer v.mu.Unlock()
	return waiting + len(v.inside)
}

func (v *visitors) entered(want ...string) func() error {
	return func() error {
		v.mu.Lock()
		defer v.mu.Unlock()
		if diff := cmp.Diff(want, v.inside); diff != "" {
			return fmt.Errorf("who was let in, in order (-want +got):\n%s", diff)
		}
		return nil
	}
}

func (v *visitors) leaves(name string) {
	v.mu.Lock()
	leave := v.leave[name]
	v.mu.Unlock()
	leave()
}

func (v *visitors) empty(t *testing.T) {
	t.Helper()
	if _, waiting, parties := v.places.Usage(); waiting != 0 || parties != 0 {
		t.Errorf("want no turn left, got %d waiting, of %d clusters", waiting, parties)
	}
}

func newVisitors(n int, c clock.Clock) *visitors {
	return &visitors{places: limits.NewSemaphore[any](n, 0), clock: c, leave: map[string]func(){}}
}

func TestListsAreFair(t *testing.T) {
	v := newVisitors(2, clock.RealClock{})
	for _, name := range []string{"a1", "a2", "a3"} {
		v.queue(t, "a", name)
	}
	eventually(t, "one cluster does not have all places", v.entered("a1"))
	v.queue(t, "b", "b1")
	eventually(t, "another one has the rest", v.entered("a1", "b1"))
	v.queue(t, "c", "c1")
	v.leaves("b1")
	eventually(t, "the cluster that holds the fewest places is next, even if another waits longer", v.entered("a1", "b1", "c1"))
	v.leaves("a1")
	eventually(t, "then the one that has waited longest", v.entered("a1", "b1", "c1", "a2"))
	v.leaves("a2")
	eventually(t, "and each one is let in", v.entered("a1", "b1", "c1", "a2", "a3"))
	v.leaves("a3")
	v.leaves("a3")
	v.leaves("c1")
	v.empty(t)
}

func TestListsForgetWhoGoesAway(t *testing.T) {
	v := newVisitors(1, clock.RealClock{})
	v.queue(t, "a", "a1")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if leave := acquireList(ctx, v.places, "b", v.clock); leave != nil {
			t.Error("want no place after the context has ended")
		}
	}()
	cancel()
	<-done
	v.queue(t, "c", "c1")
	eventually(t, "a1 is inside", v.entered("a1"))
	v.leaves("a1")
	eventually(t, "the next one is let in", v.entered("a1", "c1"))
	v.leaves("c1")
	v.empty(t)
}

// TestPlaceThatIsGrantedAsItsContextEndsIsNotLost has both happen at once, again and again.
func TestPlaceThatIsGrantedAsItsContextEndsIsNotLost(t *testing.T) {
	v := newVisitors(2, clock.RealClock{})
	var running sync.WaitGroup
	for party := range 8 {
		running.Go(func() {
			for i := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				if i%2 == 0 {
					go cancel()
				}
				if leave := acquireList(ctx, v.places, party, v.clock); leave != nil {
					leave()
				}
				cancel()
			}
		})
	}
	running.Wait()
	v.empty(t)
	if free, _, _ := v.places.Usage(); free != 2 {
		t.Errorf("want all places to be free, got %d", free)
	}
}

func TestListsDoNotWaitForOneThatHangs(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Now())
	v := newVisitors(1, fake)
	v.queue(t, "a", "a1")
	v.queue(t, "b", "b1")
	eventually(t, "a1 is inside", v.entered("a1"))
	fake.Step(listTime - time.Millisecond)
	if err := v.entered("a1")(); err != nil {
		t.Error(err)
	}
	fake.Step(time.Millisecond)
	eventually(t, "a1 does not count any more", v.entered("a1", "b1"))
	v.leaves("a1")
	v.queue(t, "c", "c1")
	if err := v.entered("a1", "b1")(); err != nil {
		t.Errorf("want a place that was given back not to be given back again: %v", err)
	}
	v.leaves("b1")
	eventually(t, "c1 is next", v.entered("a1", "b1", "c1"))
	v.leaves("c1")
	v.empty(t)
}

// TestWatchersSharePlacesToList holds the lists of two clusters up, and lets them go one by one.
func TestWatchersSharePlacesToList(t *testing.T) {
	c := testClient(t)
	var kinds []Kind
	for range 4 {
		kind, _ := newConfigMaps(t, c)
		kinds = append(kinds, kind)
	}
	var mu sync.Mutex
	underWay := map[string]int{}
	goOn := make(chan struct{})
	holdUp := func(cluster string) *rest.Config {
		return intercepted(config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
			if !strings.Contains(req.URL.RawQuery, "sendInitialEvents=true") {
				return next.RoundTrip(req)
			}
			mu.Lock()
			underWay[cluster]++
			if underWay[cluster] > 1 {
				t.Errorf("want one list of %s at once, got %v", cluster, underWay)
			}
			mu.Unlock()
			select {
			case <-goOn:
			case <-req.Context().Done():
			}
			mu.Lock()
			underWay[cluster]--
			mu.Unlock()
			return next.RoundTrip(req)
		})
	}
	places := limits.NewSemaphore[any](2, 0)
	var watchers []*Watcher
	for _, cluster := range []string{"a", "b"} {
		w, _ := start(t, holdUp(cluster), func(Event) {}, keepNotes, func(o *Options) { o.Lists = places })
		w.Set("test", kinds...)
		watchers = append(watchers, w)
	}
	eventually(t, "each cluster lists one kind", func() error {
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff(map[string]int{"a": 1, "b": 1}, underWay); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
	for range len(watchers) * len(kinds) {
		goOn <- struct{}{}
	}
	for _, w := range watchers {
		for _, kind := range kinds {
			eventually(t, "synced", inState(w, kind, StateSynced))
		}
	}
	if free, _, parties := places.Usage(); free != 2 || parties != 0 {
		t.Errorf("want all places to be given back, got %d free, and %d clusters", free, parties)
	}
}

func TestKindThatCannotBeListedGivesItsPlaceBack(t *testing.T) {
	c := testClient(t)
	good, _ := newConfigMaps(t, c)
	missing, _ := widgets(t, "gatemissing")
	// The one that is parked is not tried again.
	w, _ := start(t, config, func(Event) {}, keepNotes, func(o *Options) {
		o.Lists, o.MinBackoff = limits.NewSemaphore[any](1, 0), time.Hour
	})
	w.Set("test", missing)
	eventually(t, "the kind is parked", inState(w, missing, StateNotServed))
	w.Set("test", missing, good)
	eventually(t, "the other one is listed", inState(w, good, StateSynced))
}

// TestWatchersOfAClusterAreOneParty has as many Watchers of a cluster as there are controllers.
func TestWatchersOfAClusterAreOneParty(t *testing.T) {
	memory := limits.NewBudget(1 << 20)
	one, other := memory.Account("a", "one", nil), memory.Account("a", "other", nil)
	party := func(a *limits.Account) any { return newKindWatch(configMaps, &Options{Account: a}, &usage{}).party() }
	if party(one) != party(one) || party(one) == party(other) || party(nil) == party(nil) {
		t.Error("want a cluster to be one party, and a Watcher without an account to be one")
	}
}
