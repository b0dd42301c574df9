// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
)

// Phase is the state of one definition, of the hub or pulled before, in one workload cluster.
type Phase string

const (
	// Unknown means that one of the sides is not known yet. Nothing is decided; the definition is requeued once it is.
	Unknown Phase = "Unknown"

	// Offered means that the hub offers the kind to the cluster. The definition is created, or kept as it is in the hub.
	Offered Phase = "Offered"

	// Unrelated means that the kind is not offered, and that Masthead did not pull the definition, if there is one.
	Unrelated Phase = "Unrelated"

	// Unjudged means that the kind is not offered, and that it is undecided how its claims are followed. Both
	// definitions are read.
	Unjudged Phase = "Unjudged"

	// Retained means that the kind is not offered, and that the definition stays: its removal is not requested, or it is
	// no longer ours.
	Retained Phase = "Retained"

	// Withdrawn means that the kind is not offered, and that the definition is deleted when it has no objects.
	Withdrawn Phase = "Withdrawn"
)

// Facts are the inputs of DecidePhase. They come from watches and caches.
type Facts struct {
	// PublishedKnown reports whether the hub's offer is known, or cannot be known; ClusterKnown reports whether the
	// cluster's state is known.
	PublishedKnown, ClusterKnown bool

	// Offered reports whether the hub offers the kind and the class offers it to the cluster.
	Offered bool

	// Kept reports whether the class is missing or disables the agent, so that the cluster keeps what it has.
	Kept bool

	// Current is the metadata of the cluster's definition, if it bears our label; nil if there is none. Owner is the hub
	// as the owner of objects in the cluster.
	Current *unstructured.Unstructured
	Owner   hubidentity.Owner

	// Following reports whether the kind is followed; Followed says how.
	Following bool
	Followed  index.Followed

	// JudgeableKnown reports whether enough of both sides' definitions is known to judge, and Judged whether it was
	// decided in their present states how the kind is followed.
	JudgeableKnown, Judged bool
}

// ours reports whether Masthead pulled the cluster's definition, and still follows it as such.
func (f Facts) ours() bool {
	return f.Current != nil && IsOurs(f.Current, f.Owner) && f.Following && !f.Followed.DeletionsOnly
}

// DecidePhase returns the phase of a definition. It is a pure function: the table of its cases is in phase_test.go.
func DecidePhase(f Facts) Phase {
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
	case !f.JudgeableKnown:
		return Unknown
	case f.Judged:
		return leaves
	}
	return Unjudged
}
