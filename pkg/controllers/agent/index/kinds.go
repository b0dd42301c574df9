// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"time"

	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// Definition is the in-memory state of one definition in a cluster. All of it can be lost.
type Definition struct {
	// Followed says how its claims are followed; the zero value if they are not.
	Followed Followed

	// Verified is the state in which it was compared with the one derived from the hub's and found right.
	Verified install.State

	// Judged identifies the states on both sides for which it was last decided how to follow its kind.
	Judged string

	// Unserved is since when it is known that its kind is not served although it is installed.
	Unserved time.Time

	// Drained means that it is foreign, and that none of its claims has our finalizer.
	Drained bool

	// Unoffered means that the hub does not offer it to the cluster, or not as it is there. While it is, deleting one of
	// its objects requeues it.
	Unoffered bool
}

// Followed is a claim kind followed in a workload cluster: its definition was installed by Masthead, or may still have
// claims with our finalizer.
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

// Definition returns the state of a definition, or an empty one.
func (w *Cluster) Definition(crd string) Definition {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.definitions[crd]
}

// EditDefinition changes the state of a definition. The change must leave Followed as it is, which Follow sets. An
// empty result is dropped, since a cluster can show any number of names.
func (w *Cluster) EditDefinition(crd string, change func(*Definition)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.editDefinition(crd, change)
}

func (w *Cluster) editDefinition(crd string, change func(*Definition)) {
	d := w.definitions[crd]
	change(&d)
	if w.definitions[crd] = d; d == (Definition{}) {
		delete(w.definitions, crd)
	}
}

// Followed returns how the claims of a CRD are followed.
func (w *Cluster) Followed(crd string) (Followed, bool) {
	f := w.Definition(crd).Followed
	return f, f != (Followed{})
}

// KindFor returns the claim kind followed for a CRD.
func (w *Cluster) KindFor(crd string) (kindwatch.Kind, bool) {
	f, ok := w.Followed(crd)
	return f.Kind, ok
}

// Follow sets how the claims of a CRD are followed, the zero value for not at all, and reports whether that is a
// change.
func (w *Cluster) Follow(crd string, f Followed) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.definitions[crd].Followed == f {
		return false
	}
	w.editDefinition(crd, func(d *Definition) { d.Followed = f })
	w.watchKinds()
	return true
}

func (w *Cluster) watchKinds() {
	w.Watcher.Set(OwnerClaims, w.kinds(func(Followed) bool { return true })...)
}

// kinds returns the followed claim kinds that are selected. The caller holds mu.
func (w *Cluster) kinds(which func(Followed) bool) []kindwatch.Kind {
	var out []kindwatch.Kind
	for _, d := range w.definitions {
		if d.Followed != (Followed{}) && which(d.Followed) {
			out = append(out, d.Followed.Kind)
		}
	}
	return out
}

// ClaimKinds returns the claim kinds followed in the cluster.
func (w *Cluster) ClaimKinds() []kindwatch.Kind {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.kinds(func(Followed) bool { return true })
}

// HubKinds returns the claim kinds to follow in the hub for this cluster.
func (w *Cluster) HubKinds() []kindwatch.Kind {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.kinds(func(f Followed) bool { return f.InHub })
}

// RetainedKinds counts the followed kinds that are not offered.
func (w *Cluster) RetainedKinds() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.kinds(func(f Followed) bool { return f.Retained }))
}

// FollowedNames returns the CRD names of the claim kinds followed in the cluster.
func (w *Cluster) FollowedNames() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for name, d := range w.definitions {
		if d.Followed != (Followed{}) {
			names = append(names, name)
		}
	}
	return names
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
