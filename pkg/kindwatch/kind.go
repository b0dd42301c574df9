// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Kind says what to watch, completely enough to do it without a RESTMapper. Kinds that differ in any field are
// watched and stored apart.
type Kind struct {
	schema.GroupVersionKind

	// Resource is the plural that stands in the URL, for example "mysqlinstances".
	Resource string

	// ClusterScoped says that objects of the kind have no namespace.
	ClusterScoped bool

	// StatusSubresource says that the API server has a status subresource for the kind. It changes nothing about how the
	// kind is watched: Reduce may want to know. A Resolver sets it.
	StatusSubresource bool

	// MetadataOnly watches only the metadata of the objects. They are stored with apiVersion, kind and metadata.
	MetadataOnly bool

	// OnlyAnnotations, for MetadataOnly, names the annotations that are kept, separated by commas. Of the rest of the
	// metadata only what identifies the object and its state is kept: whoever can write to the cluster decides how large
	// the rest is.
	OnlyAnnotations string

	// OnlyLabels, for OnlyAnnotations, names labels that are kept beside the annotations, separated by commas, and
	// KeepController keeps the reference to the controller.
	OnlyLabels     string
	KeepController bool

	// Shared has the kind watched once for all Watchers of the cluster that have the same Options.Shared. Of such a kind
	// objects are kept, without anything that Options.KeepManager or Reduce would do about them.
	Shared bool

	// LabelSelector and FieldSelector narrow what is watched, in the form that the API takes. Empty means everything.
	LabelSelector string
	FieldSelector string
}

// NoAnnotations is an annotation that nobody has. As OnlyAnnotations it has none kept.
const NoAnnotations = "masthead.dev/none"

// GroupVersionResource is what the API server calls the kind.
func (k Kind) GroupVersionResource() schema.GroupVersionResource {
	return k.GroupVersion().WithResource(k.Resource)
}

// GroupResource is what the API server calls the kind in any version. It is also the name of a CRD, as its String().
func (k Kind) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// String is the kind for people, in the form "mysqlinstances.v1.database.acmeco.org".
func (k Kind) String() string {
	parts := make([]string, 0, 3)
	for _, p := range []string{k.Resource, k.Version, k.Group} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, ".")
}

// State is how far the watch of a kind has come.
type State string

const (
	// StateUnwatched means that nobody asks for the kind.
	StateUnwatched State = "Unwatched"

	// StateSyncing means that the kind is asked for and its objects are not known yet.
	StateSyncing State = "Syncing"

	// StateSynced means that the objects of the kind are known and followed.
	StateSynced State = "Synced"

	// StateNotServed means that the cluster does not serve the kind. It is tried again, and at once when poked.
	StateNotServed State = "NotServed"

	// StateForbidden means that the cluster does not let us list or watch the kind. It is tried again, and at once when
	// poked.
	StateForbidden State = "Forbidden"

	// StateStale means that the objects of the kind were known, and that for Options.StaleAfter the cluster has let them
	// neither be listed nor be watched, for whatever reason: the conversion webhook of a CRD is gone, an aggregated API
	// does not answer. What was known last is still served. It is tried again.
	StateStale State = "Stale"

	// StateTooLarge means that the cluster has more objects of the kind than are kept, or larger ones. None is kept. It is
	// tried again, and at once when poked.
	StateTooLarge State = "TooLarge"
)

// EventType says what an Event reports.
type EventType string

const (
	// Added means that the object was not known before.
	Added EventType = "Added"

	// Updated means that the object is known with another resource version, or another record; Old is what was known.
	Updated EventType = "Updated"

	// Deleted means that the object is gone; Object is the last known state of it. Of a record, it means that none is kept
	// of the object any more, whether or not it is still there; Entry is the last one that was kept.
	Deleted EventType = "Deleted"

	// StateChanged means that the kind is in another State. When it is StateSynced, the events of the objects came before.
	StateChanged EventType = "StateChanged"
)

// An Event is a change of an object or of the state of a kind. Objects and Entries in it are shared with the store and
// must not be changed.
type Event struct {
	Type EventType
	Kind Kind

	// Object and Old are set as the type says.
	Object *unstructured.Unstructured
	Old    *unstructured.Unstructured

	// Entry and OldEntry are the same for kinds of which records are kept, where Object and Old are nil.
	Entry    *Entry
	OldEntry *Entry

	// Initial is true for what the first list of a kind brought, as opposed to something that happened just now.
	Initial bool

	// Relisted is true for a deletion of which only the result was seen: the object is missing from a list, or nothing is
	// kept of the one that the list has. What happened to it between its last known state and its end is not known.
	Relisted bool

	// SelfInduced is true for an object that the Watcher was told of in just this state, see Watcher.Observe: who wrote it
	// knows it.
	SelfInduced bool

	// State is set for StateChanged.
	State State
}
