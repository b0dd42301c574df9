// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"errors"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What Reduce begins to keep is known once a list is complete that began later, and not before.
func TestGenerationsAreThoseOfCompleteLists(t *testing.T) {
	c := testClient(t)
	kind, cm := newConfigMaps(t, c)
	if err := c.Create(t.Context(), cm("late", "shop", "1")); err != nil {
		t.Fatal(err)
	}
	var generation atomic.Uint64
	generation.Store(1)
	w, _ := start(t, config, func(Event) {}, func(o *Options) {
		o.Generation = generation.Load
		o.Reduce = func(k Kind, obj *unstructured.Unstructured) (Record, bool) {
			if generation.Load() < 2 {
				return nil, false
			}
			return reduceToNote(k, obj)
		}
	})
	if begun, listed := w.Generations(kind); begun != 0 || listed != 0 {
		t.Errorf("want nothing of a kind that is not watched, got %d %d", begun, listed)
	}
	listedIs := func(want uint64) func() error {
		return func() error {
			if begun, listed := w.Generations(kind); begun != want || listed != want {
				return errors.New("it is not listed yet")
			}
			return nil
		}
	}
	w.Set("test", kind)
	eventually(t, "the first list", listedIs(1))
	generation.Store(2)
	if err := listedIs(1)(); err != nil {
		t.Error("nothing is listed again by itself")
	}
	w.Relist(only(kind))
	eventually(t, "the second list", listedIs(2))
	if err := finds(w, kind, "app/shop", "late")(); err != nil {
		t.Errorf("want everything to be known that is kept since then: %v", err)
	}
}
