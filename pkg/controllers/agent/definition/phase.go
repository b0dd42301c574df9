// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/view"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
)

// Phase is where a definition of the hub, or one that was pulled before, stands in one workload cluster.
type Phase string

const (
	// Unknown means that one of the sides is not known yet. Nothing is decided; its becoming known is a reason to look
	// again.
	Unknown Phase = "Unknown"

	// Offered means that the hub offers the kind to the cluster. The definition is put there, or kept as it is in the hub.
	Offered Phase = "Offered"

	// Unrelated means that the kind is not offered, and that the definition, if there is one, is none that Masthead
	// pulled.
	Unrelated Phase = "Unrelated"

	// Unjudged means that the kind is not offered, and that it is not decided yet how its claims are followed. Both
	// definitions are read.
	Unjudged Phase = "Unjudged"

	// Retained means that the kind is not offered, and that the definition stays: nobody says that it is to go, or it is
	// not ours any more.
	Retained Phase = "Retained"

	// Withdrawn means that the kind is not offered, and that the definition goes when there are no objects of it.
	Withdrawn Phase = "Withdrawn"
)

// Facts are what is known of a definition when its phase is determined. They come from watches and caches.
type Facts struct {
	// PublishedKnown is whether it is known what the hub offers, or that it cannot be known; ClusterKnown is the same of
	// what is in the cluster.
	PublishedKnown, ClusterKnown bool

	// Offered is whether the hub offers the kind and the class offers it to the cluster.
	Offered bool

	// Kept is whether the class says nothing about the cluster, or leaves it alone, so that the cluster keeps what it has.
	Kept bool

	// Current is the metadata of the definition in the cluster, if it bears our label; nil if there is none. Owner is the
	// hub as the owner of what is in the cluster.
	Current *unstructured.Unstructured
	Owner   hubidentity.Owner

	// Following is whether the kind is followed, and Followed how.
	Following bool
	Followed  view.Followed

	// JudgeableKnown is whether the definitions on both sides are known as far as it takes to judge, and Judged whether it
	// was decided in their present states how the kind is followed.
	JudgeableKnown, Judged bool
}

// ours is whether the definition in the cluster is one that Masthead pulled, and still follows as that.
func (f Facts) ours() bool {
	return f.Current != nil && IsOurs(f.Current, f.Owner) && f.Following && !f.Followed.DeletionsOnly
}

// PhaseOf returns the phase of a definition. It is a pure function: the table of its cases is in phase_test.go.
func PhaseOf(f Facts) Phase {
	ours := f.ours()
	leaves := Withdrawn
	if !ours || f.Kept {
		leaves = Retained
	}
	switch {
	case !f.PublishedKnown || !f.ClusterKnown:
		return Unknown
	case f.Offered:
		return Offered
	case !f.Following && (f.Current == nil || ManagedByOther(f.Current)):
		return Unrelated
	case ours && f.Followed.InHub:
		return leaves
	case !f.JudgeableKnown:
		return Unknown
	case f.Judged:
		return leaves
	}
	return Unjudged
}
