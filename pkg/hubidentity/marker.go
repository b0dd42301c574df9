// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hubidentity

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

const (
	// MaxNameLength is the maximum length in bytes of a hub's display name.
	MaxNameLength = 63

	// maxPredecessors is the maximum number of hubs in a marker. Objects of earlier hubs are left alone.
	maxPredecessors = 8
)

// A Hub is one hub, as its marker describes it.
type Hub struct {
	ID Identity
	// Name is the hub's display name; empty for none.
	Name string
}

// ParseName parses a hub's display name. The error says what is wrong.
func ParseName(text string) (string, error) {
	if len(text) > MaxNameLength {
		return "", fmt.Errorf("the name of a hub has at most %d bytes, this one has %d", MaxNameLength, len(text))
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsGraphic(r) || r == '"' }) {
		return "", errors.New("the name of a hub must consist of printable characters other than quotation marks")
	}
	return text, nil
}

// String returns the hub's name for messages.
func (h Hub) String() string {
	if h.Name == "" {
		return fmt.Sprintf("%q", h.ID)
	}
	return fmt.Sprintf("%q (%s)", h.ID, h.Name)
}

// Marker is the content of a workload cluster's marker.
type Marker struct {
	// Holder is the hub that the cluster belongs to. It has no identity if the cluster was released.
	Holder Hub

	// Foreign says that the marker names a holder that cannot be a hub's identity.
	Foreign bool

	// Predecessors are the hubs from which the cluster was taken over, or that released it, the latest first.
	Predecessors []Identity
}

// GetMarker parses a marker. Its content is untrusted: the cluster's owner can write it.
func GetMarker(obj metav1.Object) Marker {
	m := Marker{}
	if holder := obj.GetLabels()[fleetv1alpha1.HubLabel]; holder != "" {
		id, err := Parse(holder)
		m.Holder.ID, m.Foreign = id, err != nil
	}
	if name, err := ParseName(obj.GetAnnotations()[fleetv1alpha1.HubNameAnnotation]); err == nil && m.Holder.ID != "" {
		m.Holder.Name = name
	}
	for text := range strings.SplitSeq(obj.GetAnnotations()[fleetv1alpha1.HubPredecessorsAnnotation], ",") {
		id, err := Parse(strings.TrimSpace(text))
		if err == nil && id != m.Holder.ID && !slices.Contains(m.Predecessors, id) && len(m.Predecessors) < maxPredecessors {
			m.Predecessors = append(m.Predecessors, id)
		}
	}
	return m
}

// Verdict is what a marker means for a hub.
type Verdict string

const (
	// VerdictHeld means: the cluster belongs to the hub, and the marker says so.
	VerdictHeld Verdict = "Held"
	// VerdictFree means: the hub may claim the cluster by writing the marker.
	VerdictFree Verdict = "Free"
	// VerdictOther means: the cluster belongs to another hub.
	VerdictOther Verdict = "Other"
)

// Judge decides what the marker of a cluster, nil if there is none, means for a hub, and what the marker must say if
// the hub holds or claims the cluster. takeOver is the hub from which the cluster may be taken over; empty for none.
//
// A consent is ignored if the marker says that the other hub took the cluster over from this one: the consent is older.
// Otherwise two hubs with consents would take a cluster from each other forever.
func Judge(have *Marker, us Hub, takeOver Identity) (Verdict, Marker) {
	want := Marker{Holder: us}
	if have == nil {
		want.Predecessors = predecessors(us.ID, takeOver)
		return VerdictFree, want
	}
	switch {
	case have.Foreign:
		return VerdictOther, Marker{}
	case have.Holder.ID == us.ID && (takeOver == "" || takeOver == us.ID || slices.Contains(have.Predecessors, takeOver)):
		want.Predecessors = have.Predecessors
		return VerdictHeld, want
	case have.Holder.ID == us.ID, have.Holder.ID == "":
		want.Predecessors = predecessors(us.ID, append([]Identity{takeOver}, have.Predecessors...)...)
		return VerdictFree, want
	case have.Holder.ID == takeOver && !slices.Contains(have.Predecessors, us.ID):
		want.Predecessors = predecessors(us.ID, append([]Identity{takeOver}, have.Predecessors...)...)
		return VerdictFree, want
	}
	return VerdictOther, Marker{}
}

// ReleasedMarker is the marker of a cluster that its hub released. The next hub to claim it owns what was left.
func ReleasedMarker(have Marker) Marker {
	return Marker{Predecessors: predecessors("", append([]Identity{have.Holder.ID}, have.Predecessors...)...)}
}

func predecessors(us Identity, candidates ...Identity) []Identity {
	var out []Identity
	for _, id := range candidates {
		if id != "" && id != us && !slices.Contains(out, id) && len(out) < maxPredecessors {
			out = append(out, id)
		}
	}
	return out
}

// Owner returns the hub that holds the cluster, as the owner of objects there.
func (m Marker) Owner() Owner { return Owner{ID: m.Holder.ID, Predecessors: m.Predecessors} }

// Object returns the marker as a definition. have is the metadata of the one to replace, whose other labels and
// annotations are kept; nil if there is none.
func (m Marker) Object(have *metav1.ObjectMeta) map[string]any {
	labels, annotations := map[string]string{}, map[string]string{}
	metadata := map[string]any{"name": fleetv1alpha1.HubMarkerName}
	if have != nil {
		metadata["uid"], metadata["resourceVersion"] = string(have.UID), have.ResourceVersion
		maps.Copy(labels, have.Labels)
		maps.Copy(annotations, have.Annotations)
		if len(have.Finalizers) > 0 {
			metadata["finalizers"] = have.Finalizers
		}
	}
	set := func(in map[string]string, key, value string) {
		if value == "" {
			delete(in, key)
			return
		}
		in[key] = value
	}
	names := make([]string, 0, len(m.Predecessors))
	for _, id := range m.Predecessors {
		names = append(names, string(id))
	}
	set(labels, fleetv1alpha1.HubLabel, string(m.Holder.ID))
	set(annotations, fleetv1alpha1.HubNameAnnotation, m.Holder.Name)
	set(annotations, fleetv1alpha1.HubPredecessorsAnnotation, strings.Join(names, ","))
	metadata["labels"], metadata["annotations"] = labels, annotations
	plural, group, _ := strings.Cut(fleetv1alpha1.HubMarkerName, ".")
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": metadata,
		"spec": map[string]any{
			"group": group, "scope": "Cluster",
			"names": map[string]any{"plural": plural, "singular": "hub", "kind": "Hub", "listKind": "HubList"},
			"versions": []any{map[string]any{
				"name": "v1alpha1", "served": false, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type":        "object",
					"description": "The metadata of this definition says which Masthead hub the cluster belongs to. There are no objects of it.",
				}},
			}},
		},
	}
}
