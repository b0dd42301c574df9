// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/masthead-dev/masthead/pkg/dynamicclient"
)

// idle returns a Watcher that was not started: it counts, and asks no server.
func idle(tb testing.TB, change ...func(*Options)) *Watcher {
	tb.Helper()
	o := Options{Client: struct{ dynamicclient.Objects }{}, Handler: func(Event) {}}
	for _, c := range change {
		c(&o)
	}
	w, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

func numbered(n int) Kind {
	return Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Kind" + strconv.Itoa(n)},
		Resource:         "kinds" + strconv.Itoa(n),
	}
}

func watched(w *Watcher) map[Kind]int {
	w.mu.RLock()
	defer w.mu.RUnlock()
	out := map[Kind]int{}
	for kind, k := range w.kinds {
		out[kind] = k.owners
	}
	return out
}

// TestOwnersAreCounted has many owners come and go, and compares with what follows from what each of them asks for.
func TestOwnersAreCounted(t *testing.T) {
	w := idle(t)
	const owners = 8
	wanted := make([]sets.Set[Kind], owners)
	var running sync.WaitGroup
	for owner := range owners {
		running.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(owner)))
			for range 2000 {
				if random.IntN(4) == 0 {
					w.Release(strconv.Itoa(owner))
					wanted[owner] = nil
					continue
				}
				var kinds []Kind
				for range random.IntN(6) {
					// Some are named twice.
					kinds = append(kinds, numbered(random.IntN(5)))
				}
				w.Set(strconv.Itoa(owner), kinds...)
				wanted[owner] = sets.New(kinds...)
			}
		})
	}
	running.Wait()

	want := map[Kind]int{}
	for _, kinds := range wanted {
		for kind := range kinds {
			want[kind]++
		}
	}
	if diff := cmp.Diff(want, watched(w)); diff != "" {
		t.Errorf("kinds and the number of their owners (-want +got):\n%s", diff)
	}
	for owner := range owners {
		w.Release(strconv.Itoa(owner))
	}
	if got := watched(w); len(got) != 0 || len(w.owners) != 0 {
		t.Errorf("want nothing to be left after the last owner, got %v and %d owners", got, len(w.owners))
	}
}

func TestAKindThatIsRequestedAgainGoesOn(t *testing.T) {
	w := idle(t)
	w.Set("one", numbered(1), numbered(2))
	before := w.kind(numbered(1))
	w.Set("one", numbered(1), numbered(3), numbered(1))
	if w.kind(numbered(1)) != before {
		t.Error("want a kind that is requested before and after not to be restarted")
	}
	if diff := cmp.Diff(map[Kind]int{numbered(1): 1, numbered(3): 1}, watched(w)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.Set("one", numbered(1))
	w.Set("two", numbered(1))
	w.Release("unknown")
	w.Release("one")
	w.Release("one")
	if diff := cmp.Diff(map[Kind]int{numbered(1): 1}, watched(w)); diff != "" {
		t.Errorf("want an owner to be let go once (-want +got):\n%s", diff)
	}
}

func TestLinger(t *testing.T) {
	c := testClient(t)
	first, cm := newConfigMaps(t, c)
	second, _ := newConfigMaps(t, c)
	fake := clocktesting.NewFakeClock(time.Now())
	d := &diary{}
	w, _ := start(t, config, d.handle, keepNotes, func(o *Options) { o.Linger, o.Clock = time.Minute, fake })
	w.Set("one", first, second)
	eventually(t, "synced", func() error {
		if err := inState(w, first, StateSynced)(); err != nil {
			return err
		}
		return inState(w, second, StateSynced)()
	})
	before := w.kind(first)
	kinds := func(want ...Kind) func() error {
		return func() error {
			got := slices.Collect(maps.Keys(watched(w)))
			if diff := cmp.Diff(sets.New(want...), sets.New(got...)); diff != "" {
				return fmt.Errorf("kinds that are watched (-want +got):\n%s", diff)
			}
			return nil
		}
	}

	w.Release("one")
	eventually(t, "a timer runs", func() error {
		if !fake.HasWaiters() {
			return fmt.Errorf("no timer runs")
		}
		return nil
	})
	fake.Step(59 * time.Second)
	if err := kinds(first, second)(); err != nil {
		t.Errorf("want kinds to linger: %v", err)
	}
	if err := c.Create(t.Context(), cm("late", "shop", "1")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a kind that lingers is followed", finds(w, first, "app/shop", "late"))

	// One is wanted again, and then not any more: its time starts again.
	w.Set("two", first)
	fake.Step(time.Second)
	eventually(t, "the time of the other is over", func() error {
		// A timer that was being set while the time went on was set too late.
		select {
		case w.idle <- struct{}{}:
		default:
		}
		return kinds(first)()
	})
	if w.kind(first) != before {
		t.Error("want the watch that lingered to be used again")
	}
	if err := w.WaitForSync(t.Context()); err != nil {
		t.Error(err)
	}
	w.Release("two")
	eventually(t, "its time is over, too", func() error {
		fake.Step(30 * time.Second)
		return kinds()()
	})
	if objects := w.used.objects.Load(); objects != 0 {
		t.Errorf("want nothing to be kept, got %d", objects)
	}
}
