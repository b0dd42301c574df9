// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"bytes"
	"errors"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/pkg/limits"
)

// ours counts the goroutines that run code of this package, but for those of tests.
func ours() (int, string) {
	var all bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&all, 2)
	n, found := 0, strings.Builder{}
	for stack := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(stack, "kindwatch.(*kindWatch)") || strings.Contains(stack, "kindwatch.acquireList") {
			n++
			found.WriteString(stack + "\n\n")
		}
	}
	return n, found.String()
}

func settles(want int) func() error {
	return func() error {
		if n, stacks := ours(); n != want {
			return fmt.Errorf("want %d goroutines of watches, got %d:\n%s", want, n, stacks)
		}
		return nil
	}
}

// TestNoWatchIsLeftBehind counts goroutines before and after each event that can end a watch.
func TestNoWatchIsLeftBehind(t *testing.T) {
	c := testClient(t)
	eventually(t, "the tests before have ended", settles(0))
	quick := func(o *Options) {
		o.Reduce, o.Lists = reduceToNote, limits.NewSemaphore[any](2, 0)
		o.MinBackoff, o.MaxBackoff, o.Linger = 10*time.Millisecond, 50*time.Millisecond, 20*time.Millisecond
	}
	w, stop := start(t, config, func(Event) {}, quick)
	first, _ := newConfigMaps(t, c)
	w.Set("base", first)
	eventually(t, "synced", inState(w, first, StateSynced))
	const base = 1 // Goroutine of a kind that is watched.
	eventually(t, "the place to list is given back", settles(base))

	t.Run("LastOwner", func(t *testing.T) {
		for i := range 20 {
			kind, _ := newConfigMaps(t, c)
			w.Set("one", kind)
			w.Set("two", kind)
			if i%2 == 0 {
				eventually(t, "synced", inState(w, kind, StateSynced))
			}
			w.Release("one")
			w.Release("two")
		}
		eventually(t, "nothing is left of released kinds", settles(base))
	})

	t.Run("Definition", func(t *testing.T) {
		kind, crd := widgets(t, "leaked")
		if err := c.Create(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
		w.Set("custom", kind)
		eventually(t, "synced", inState(w, kind, StateSynced))
		undefine(t, c, crd)
		eventually(t, "parked", inState(w, kind, StateNotServed))
		w.Release("custom")
		eventually(t, "nothing is left of a kind that went", settles(base))
	})

	// A kind that is stopped while its initial events arrive refuses them, half of the times.
	t.Run("RefusedInitialEvents", func(t *testing.T) {
		kind, named := newConfigMaps(t, c)
		if err := c.Create(t.Context(), named("one", "shop", "1")); err != nil {
			t.Fatal(err)
		}
		refusing, released := make(chan *Watcher, 1), make(chan struct{}, 1)
		refuse := func(_ Kind, obj *unstructured.Unstructured) (Record, bool) {
			select {
			case w := <-refusing:
				w.Release("refused")
				released <- struct{}{}
			default:
			}
			return reduceToNote(kind, obj)
		}
		w, _ := start(t, config, func(Event) {}, func(o *Options) { o.Reduce = refuse })
		for range 20 {
			refusing <- w
			w.Set("refused", kind)
			eventually(t, "it is released", func() error {
				select {
				case <-released:
					return nil
				default:
					return errors.New("nothing has arrived")
				}
			})
		}
		eventually(t, "nothing is left of watches whose initial events were refused", settles(base))
	})

	t.Run("Relist", func(t *testing.T) {
		for range 20 {
			w.Relist(only(first))
		}
		eventually(t, "nothing is left of restarted lists", settles(base))
		eventually(t, "synced", inState(w, first, StateSynced))
	})

	t.Run("Cluster", func(t *testing.T) {
		missing, _ := widgets(t, "leakedmissing")
		second, _ := newConfigMaps(t, c)
		w.Set("more", missing, second)
		eventually(t, "synced", inState(w, second, StateSynced))
		stop()
		eventually(t, "nothing is left of a cluster that went", settles(0))
		w.Set("late", first)
		eventually(t, "and nothing begins after it", settles(0))
	})
}
