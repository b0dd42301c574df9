// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// isUnanswered reports whether a group and version is not requested at present.
func (w *Cluster) isUnanswered(gv schema.GroupVersion) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	until, ok := w.unansweredUntil[gv]
	return ok && w.Clock.Now().Before(until)
}

// setUnanswered stops requests for a group and version for a while. Otherwise one that hangs would delay every
// Application that names it.
func (w *Cluster) setUnanswered(gv schema.GroupVersion) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.Clock.Now()
	maps.DeleteFunc(w.unansweredUntil, func(_ schema.GroupVersion, until time.Time) bool { return !now.Before(until) })
	w.unansweredUntil[gv] = now.Add(unansweredFor)
}

func (w *Cluster) forgetAllUnanswered() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.unansweredUntil)
}

func (w *Cluster) forgetUnanswered(group string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.unansweredUntil, func(gv schema.GroupVersion, _ time.Time) bool { return gv.Group == group })
}
