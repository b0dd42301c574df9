// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
)

// Mode is what is done about the Applications of a cluster.
type Mode string

const (
	// ModeIdle is to do nothing, because it is not known yet what to do, or because the cluster has none that are ours.
	ModeIdle Mode = ""

	// ModeEnabled is to look after them.
	ModeEnabled Mode = "Enabled"

	// ModeDisabled is to tell them that nobody looks any more.
	ModeDisabled Mode = "Disabled"
)

// SetMode changes what is done about the Applications of the cluster, and says whether that is news.
func (w *Cluster) SetMode(m Mode) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	news := w.mode != m
	w.mode = m
	if news {
		w.regime++
	}
	return news
}

// CurrentRegime is the number of the mode and the policy that are in force.
func (w *Cluster) CurrentRegime() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.regime
}

// CurrentMode is what is done about the Applications of the cluster.
func (w *Cluster) CurrentMode() Mode {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mode
}

// SetPolicy changes what the class of the cluster lets be done, and says whether that is news.
func (w *Cluster) SetPolicy(p record.Policy) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.policy
	w.policy = p
	news := before.ObserveOnly != p.ObserveOnly || before.OwnsDiscovered != p.OwnsDiscovered ||
		!equality.Semantic.DeepEqual(before.Visibility, p.Visibility)
	if news {
		w.regime++
	}
	return news
}

// SightOf is what the Applications of a namespace see.
func (w *Cluster) SightOf(namespace string) record.Sight {
	w.mu.Lock()
	defer w.mu.Unlock()
	return record.Sight{Own: namespace, Policy: w.policy}
}

// Idle stops looking after the Applications of a cluster.
func (w *Cluster) Idle() {
	if w.SetMode(ModeIdle) {
		w.Watcher.Set(OwnerFixed, record.OwnedDefinitionKind)
		for _, key := range w.Keys() {
			w.Untrack(key)
		}
	}
}
