// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"maps"
	"slices"
	"time"

	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// ClaimKinds returns the claim kinds followed in the cluster.
func (w *Cluster) ClaimKinds() []kindwatch.Kind {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]kindwatch.Kind, 0, len(w.kinds))
	for _, f := range w.kinds {
		out = append(out, f.Kind)
	}
	return out
}

// HubKinds returns the claim kinds to follow in the hub for this cluster.
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

// RetainedKinds counts the followed kinds that are not offered.
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

// IsDrained reports whether SetDrained recorded that no claim of the kind is left to release.
func (w *Cluster) IsDrained(crd string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.drained.Has(crd)
}

// SetDrained records that a definition is foreign and none of its claims has our finalizer.
func (w *Cluster) SetDrained(crd string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drained.Insert(crd)
}

// SetAccepted records that a definition is Masthead's, so that its claims can get our finalizer.
func (w *Cluster) SetAccepted(crd string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drained.Delete(crd)
	w.Judged.Set(crd, "")
}

// FollowedNames returns the CRD names of the claim kinds followed in the cluster.
func (w *Cluster) FollowedNames() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.kinds))
}

// definitionNames returns the names of all CRDs in this cluster that concern Masthead, published or not.
func (w *Cluster) definitionNames() []string {
	names := w.FollowedNames()
	crds, err := w.Watcher.List(OwnedCRDKind)
	if err != nil {
		return names
	}
	for _, crd := range crds {
		names = append(names, crd.Key.Name)
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

// KindFor returns the claim kind followed for a CRD.
func (w *Cluster) KindFor(crd string) (kindwatch.Kind, bool) {
	f, ok := w.Followed(crd)
	return f.Kind, ok
}

// Follow starts following the claims of a kind, and reports whether that is a change.
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

// Unfollow stops following the claims of a kind, and reports whether that is a change.
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

// Followed is a claim kind followed in a workload cluster.
type Followed struct {
	Kind kindwatch.Kind

	// InHub reports whether this cluster has the kind followed in the hub. The hub decides, never the cluster alone.
	InHub bool

	// Retained reports whether the kind is not offered, or not in this version, and followed only because the cluster has
	// claims of it.
	Retained bool

	// DeletionsOnly means that claims with our finalizer are only released: the definition is no longer Masthead's.
	DeletionsOnly bool
}

// IsJudged reports whether it was decided for these states of a definition how to follow its kind.
func (w *Cluster) IsJudged(crd, states string) bool { return states != "" && w.Judged.Is(crd, states) }

// ForgetDefinition drops the records of a deleted definition, since a cluster can show any number of names.
func (w *Cluster) ForgetDefinition(crd string) {
	w.Verified.Set(crd, install.State{})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Judged.Set(crd, "")
	delete(w.unoffered, crd)
	w.Unserved.Set(crd, time.Time{})
	w.drained.Delete(crd)
}

// SetUnoffered records whether a definition is not offered, or not as it is in the cluster. While it is, deleting one
// of its objects requeues it.
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

// IsUnoffered reports whether SetUnoffered recorded that a definition is not offered.
func (w *Cluster) IsUnoffered(crd string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.unoffered[crd]
	return ok
}
