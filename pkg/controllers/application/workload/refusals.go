// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"
	"time"

	"github.com/masthead-dev/masthead/pkg/condition"
)

// Refusal is a write that the cluster refused. It is not tried again before its time.
type Refusal struct {
	Until   time.Time
	Problem condition.Problem
}

// Refuse notes that the cluster refused a write of an object or, with a key that has no name, of all objects of a kind
// in a namespace. Rights are granted for kinds and namespaces, so what is refused in one namespace says nothing about
// another.
func (w *Cluster) Refuse(key ObjectKey, r Refusal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.Clock.Now()
	maps.DeleteFunc(w.refusals, func(_ ObjectKey, r Refusal) bool { return !now.Before(r.Until) })
	w.refusals[key] = r
}

// Refusal is the refusal because of which a write of an object is not tried, if there is one whose time is not over.
func (w *Cluster) Refusal(key ObjectKey) (Refusal, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.Clock.Now()
	ofAll := key
	ofAll.Name = ""
	for _, k := range []ObjectKey{key, ofAll} {
		if r, ok := w.refusals[k]; ok && now.Before(r.Until) {
			return r, true
		}
	}
	return Refusal{}, false
}
