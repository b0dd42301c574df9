// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"
	"time"

	"github.com/masthead-dev/masthead/pkg/condition"
)

// Refusal is a write that the cluster refused. It is not retried before its time.
type Refusal struct {
	Until   time.Time
	Problem condition.Error
}

// Refuse records that the cluster refused a write of an object or, with a key without name, of all objects of a kind in
// a namespace. Rights are granted for kinds and namespaces, so a refusal says nothing about other namespaces.
func (w *Cluster) Refuse(key ObjectKey, r Refusal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.Clock.Now()
	maps.DeleteFunc(w.refusals, func(_ ObjectKey, r Refusal) bool { return !now.Before(r.Until) })
	w.refusals[key] = r
}

// Refusal is the unexpired refusal that prevents a write of an object, if there is one.
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
