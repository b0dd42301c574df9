// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Kind says what to watch, without need for a RESTMapper. Kinds that differ in any field are watched and stored
// separately.
type Kind struct {
	schema.GroupVersionKind

	// Resource is the plural name in the URL, for example "mysqlinstances".
	Resource string

	// ClusterScoped says that objects of the kind have no namespace.
	ClusterScoped bool

	// StatusSubresource says that the API server has a status subresource for the kind. It does not affect the watch;
	// Reduce may use it. A Resolver sets it.
	StatusSubresource bool

	// MetadataOnly watches only the metadata of the objects. They are stored with apiVersion, kind and metadata.
	MetadataOnly bool

	// OnlyAnnotations, for MetadataOnly, names the annotations that are kept, separated by commas. Of the other metadata,
	// only the object's identity and state are kept: anybody who can write to the cluster controls the size of the rest.
	OnlyAnnotations string

	// OnlyLabels, for OnlyAnnotations, names labels that are also kept, separated by commas. KeepController keeps the
	// controller reference.
	OnlyLabels     string
	KeepController bool

	// Shared makes all Watchers of the cluster with the same Options.Shared share one watch of the kind. Its objects are
	// stored without applying Options.KeepManager or Reduce.
	Shared bool

	// Namespace, if not empty, is the only one that is watched, by requests for which rights in that namespace suffice.
	Namespace string

	// LabelSelector and FieldSelector restrict the watch, in API syntax. Empty means everything.
	LabelSelector string
	FieldSelector string
}

// NoAnnotations is an annotation that no object has. Used as OnlyAnnotations, it keeps none.
const NoAnnotations = "masthead.dev/none"

// GroupVersionResource returns the kind's resource.
func (k Kind) GroupVersionResource() schema.GroupVersionResource {
	return k.GroupVersion().WithResource(k.Resource)
}

// GroupResource returns the kind's resource without a version. Its String() is also the name of the CRD.
func (k Kind) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// String returns the kind in readable form, for example "mysqlinstances.v1.database.acmeco.org".
func (k Kind) String() string {
	parts := make([]string, 0, 3)
	for _, p := range []string{k.Resource, k.Version, k.Group} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, ".")
}

// State is the state of a kind's watch.
type State string

const (
	// StateUnwatched means that no owner requests the kind.
	StateUnwatched State = "Unwatched"

	// StateSyncing means that the kind is requested and its first list is not complete.
	StateSyncing State = "Syncing"

	// StateSynced means that the objects of the kind are listed and watched.
	StateSynced State = "Synced"

	// StateNotServed means that the cluster does not serve the kind. It is retried, and at once on Retry.
	StateNotServed State = "NotServed"

	// StateForbidden means that Masthead may not list or watch the kind. It is retried, and at once on Retry.
	StateForbidden State = "Forbidden"

	// StateStale means that a synced kind could be neither listed nor watched for Options.StaleAfter, for any reason: the
	// conversion webhook of a CRD is gone, an aggregated API does not answer. The last known objects are still served. It
	// is retried.
	StateStale State = "Stale"

	// StateTooLarge means that the cluster's objects of the kind exceed a limit in number or size. None is kept. It is
	// retried, and at once on Retry.
	StateTooLarge State = "TooLarge"
)

// EventType is the type of an Event.
type EventType string

const (
	// Added means that the object was not known before.
	Added EventType = "Added"

	// Updated means that the object has another resource version, or another record; Old is the previous state.
	Updated EventType = "Updated"

	// Deleted means that the object is gone; Object is its last known state. For records, it means that no record of the
	// object is kept any more, whether or not the object still exists; Entry is the last one.
	Deleted EventType = "Deleted"

	// StateChanged means that the kind's State changed. When it is StateSynced, the objects' events came before.
	StateChanged EventType = "StateChanged"
)

// An Event is a change of an object or of the state of a kind. Its Objects and Entries must not be changed: those of a
// kind with Shared are for several Watchers, and Entries are the store's.
type Event struct {
	Type EventType
	Kind Kind

	// Object and Old are set according to the type.
	Object *unstructured.Unstructured
	Old    *unstructured.Unstructured

	// Entry and OldEntry replace Object and Old, which are then nil, for kinds with records.
	Entry    *Entry
	OldEntry *Entry

	// Initial is true for objects from the first list of a kind, as opposed to later changes.
	Initial bool

	// Relisted is true for a deletion inferred from a list: the object is missing from it, or its listed state is not
	// kept. Changes between its last known state and its deletion were not seen.
	Relisted bool

	// SelfInduced is true if Watcher.Observe received the object in exactly this state: its writer already knows it.
	SelfInduced bool

	// State is set for StateChanged.
	State State
}
