// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"maps"
	"slices"
	"time"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// ClaimKinds are the claim kinds that are followed in the cluster.
func (w *Cluster) ClaimKinds() []kindwatch.Kind {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]kindwatch.Kind, 0, len(w.kinds))
	for _, f := range w.kinds {
		out = append(out, f.Kind)
	}
	return out
}

// HubKinds are the claim kinds that have to be followed in the hub because of this cluster.
func (w *Cluster) HubKinds() []kindwatch.Kind {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []kindwatch.Kind
	for _, f := range w.kinds {
		if f.InHub {
			out = append(out, f.Kind)
		}
	}
	return out
}

// RetainedKinds is how many kinds are followed that are not offered.
func (w *Cluster) RetainedKinds() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, f := range w.kinds {
		if f.Retained {
			n++
		}
	}
	return n
}

// IsDrained is whether SetDrained has noted that nothing is left of a kind to be let go.
func (w *Cluster) IsDrained(crd string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.drained.Has(crd)
}

// SetDrained notes that a definition is not Masthead's, and that no claim of it bears our finalizer.
func (w *Cluster) SetDrained(crd string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drained.Insert(crd)
}

// SetAccepted notes that a definition is Masthead's, so that claims can get our finalizer.
func (w *Cluster) SetAccepted(crd string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drained.Delete(crd)
	delete(w.judged, crd)
}

// FollowedNames are the names of the CRDs of the claim kinds that are followed in the cluster.
func (w *Cluster) FollowedNames() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.kinds))
}

// definitionNames are the names of the CRDs that Masthead has to do with in this cluster, whether published or not.
func (w *Cluster) definitionNames() []string {
	names := w.FollowedNames()
	crds, err := w.Watcher.List(OwnedCRDKind)
	if err != nil {
		return names
	}
	for _, crd := range crds {
		names = append(names, crd.GetName())
	}
	return names
}

// Followed returns how the claims of a CRD are followed.
func (w *Cluster) Followed(crd string) (Followed, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, ok := w.kinds[crd]
	return f, ok
}

// KindOf returns the claim kind that is followed for a CRD.
func (w *Cluster) KindOf(crd string) (kindwatch.Kind, bool) {
	f, ok := w.Followed(crd)
	return f.Kind, ok
}

// Follow follows the claims of a kind from now on, and says whether that is news.
func (w *Cluster) Follow(crd string, f Followed) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kinds[crd] == f {
		return false
	}
	w.kinds[crd] = f
	w.watchKinds()
	return true
}

// Unfollow leaves the claims of a kind alone from now on, and says whether that is news.
func (w *Cluster) Unfollow(crd string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.kinds[crd]; !ok {
		return false
	}
	delete(w.kinds, crd)
	w.watchKinds()
	return true
}

func (w *Cluster) watchKinds() {
	kinds := make([]kindwatch.Kind, 0, len(w.kinds))
	for _, f := range w.kinds {
		kinds = append(kinds, f.Kind)
	}
	w.Watcher.Set(OwnerClaims, kinds...)
}

// UnservedSince notes that the kind of a definition that is in place is not served, and returns since when that is
// known.
func (w *Cluster) UnservedSince(crd string, now time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	since, noted := w.unserved[crd]
	if !noted {
		since = now
		w.unserved[crd] = now
	}
	return since
}

// SetServed notes that the kind of a definition is served.
func (w *Cluster) SetServed(crd string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.unserved, crd)
}

// Followed is a kind of claims that is followed in a workload cluster.
type Followed struct {
	Kind kindwatch.Kind

	// InHub is whether the kind is followed in the hub because of this cluster. The hub says so, never the cluster alone.
	InHub bool

	// Retained is whether the kind is not offered, and followed only because the cluster has claims of it.
	Retained bool

	// DeletionsOnly is whether nothing is done but to let claims go that bear our finalizer: the definition is not
	// Masthead's any more.
	DeletionsOnly bool
}

// IsJudged is whether it was decided on these states of a definition how its kind is followed.
func (w *Cluster) IsJudged(crd, states string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return states != "" && w.judged[crd] == states
}

// SetJudged notes the states of a definition on which it was decided how its kind is followed.
func (w *Cluster) SetJudged(crd, states string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if states == "" {
		delete(w.judged, crd)
		return
	}
	w.judged[crd] = states
}

// ForgetDefinition drops what was noted of a definition that is gone. Names of definitions are as many as the cluster
// ever shows.
func (w *Cluster) ForgetDefinition(crd string) {
	w.Verified.Forget(func(name string) bool { return name == crd })
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.judged, crd)
	delete(w.unoffered, crd)
	delete(w.unserved, crd)
	w.drained.Delete(crd)
}

// SetUnoffered remembers that a definition is not offered, or not as it is in the cluster, so that the end of each of
// its objects is a reason to look at it.
func (w *Cluster) SetUnoffered(crd string, unoffered bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !unoffered {
		delete(w.unoffered, crd)
		return
	}
	if w.unoffered == nil {
		w.unoffered = map[string]struct{}{}
	}
	w.unoffered[crd] = struct{}{}
}

// IsUnoffered is whether SetUnoffered has noted that a definition is not offered.
func (w *Cluster) IsUnoffered(crd string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.unoffered[crd]
	return ok
}
