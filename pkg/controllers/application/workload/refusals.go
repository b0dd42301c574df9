// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"
	"time"

	"github.com/masthead-dev/masthead/pkg/condition"
)

// refusalKey is an object of which a write was refused, or with no name all objects of a kind in a namespace. Rights
// are granted for kinds and namespaces, so what is refused in one namespace says nothing about another.
type refusalKey = ObjectKey

// Refusal is a write that the cluster refused. It is not tried again before its time.
type Refusal struct {
	Until   time.Time
	Problem condition.Problem
}

func (w *Cluster) Refuse(key refusalKey, r Refusal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.Clock.Now()
	maps.DeleteFunc(w.refusals, func(_ refusalKey, r Refusal) bool { return !now.Before(r.Until) })
	w.refusals[key] = r
}

func (w *Cluster) Refusal(key refusalKey) (Refusal, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.Clock.Now()
	ofAll := key
	ofAll.Name = ""
	for _, k := range []refusalKey{key, ofAll} {
		if r, ok := w.refusals[k]; ok && now.Before(r.Until) {
			return r, true
		}
	}
	return Refusal{}, false
}
