// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
)

// Mode is how the Applications of a cluster are handled.
type Mode string

const (
	// ModeIdle does nothing: the mode is not known yet, or the cluster does not have Masthead's definition of
	// Applications.
	ModeIdle Mode = ""

	// ModeEnabled reconciles them.
	ModeEnabled Mode = "Enabled"

	// ModeDisabled marks them as unobserved.
	ModeDisabled Mode = "Disabled"
)

// SetMode sets the mode of the cluster, and reports whether it changed.
func (w *Cluster) SetMode(m Mode) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	news := w.mode != m
	w.mode = m
	if news {
		w.policyGeneration++
	}
	return news
}

// PolicyGeneration is the number of the current mode and policy.
func (w *Cluster) PolicyGeneration() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.policyGeneration
}

// CurrentMode is the current mode of the cluster.
func (w *Cluster) CurrentMode() Mode {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mode
}

// SetPolicy sets what the cluster's class allows, and reports whether it changed.
func (w *Cluster) SetPolicy(p record.Policy) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.policy
	w.policy = p
	news := before.ObserveOnly != p.ObserveOnly || before.OwnsDiscovered != p.OwnsDiscovered ||
		!equality.Semantic.DeepEqual(before.Visibility, p.Visibility)
	if news {
		w.policyGeneration++
	}
	return news
}

// VisibilityIn is what the Applications of a namespace see.
func (w *Cluster) VisibilityIn(namespace string) record.Visibility {
	w.mu.Lock()
	defer w.mu.Unlock()
	return record.Visibility{Own: namespace, Policy: w.policy}
}

// Idle stops reconciling the Applications of a cluster.
func (w *Cluster) Idle() {
	if w.SetMode(ModeIdle) {
		w.Watcher.Set(OwnerFixed, record.OwnedDefinitionKind)
		for _, key := range w.Keys() {
			w.Untrack(key)
		}
	}
}
