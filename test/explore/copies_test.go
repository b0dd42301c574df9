// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/test/explore/apiserver"
)

// passTime is how long a pass of discovery, or of references, can act on what it has read: its own time, that in which
// its process can be frozen, and that in which its last request can still be executed.
const passTime = 3 * time.Minute

// owner is who has written a change for Masthead.
func (w *world) owner(change apiserver.Change) hubidentity.Owner {
	if h := w.hubs[change.Manager]; h != nil {
		return hubidentity.Owner{ID: h.id}
	}
	return hubidentity.Owner{ID: hubidentity.Identity(strings.TrimPrefix(change.Manager, fleetv1alpha1.FieldManager+"-"))}
}

// copyChanged checks a change of a copy, or of a definition of copies, in a workload cluster. Masthead is certain to
// have seen what it changes: its requests are for a version.
func (c *checker) copyChanged(cluster *workload, change apiserver.Change) {
	k := change.Key
	isDefinition := k.GroupResource == crds
	if isDefinition && k.Name != xrds.String() && k.Name != compositions.String() {
		return
	}
	at := cluster.identifier + k.String()
	switch since := c.foreign[at]; {
	case change.New == nil || isCopy(change.New):
		delete(c.foreign, at)
	case since.IsZero():
		c.foreign[at] = time.Now()
	}
	c.noticed(cluster, change)
	switch owner := c.w.owner(change); {
	case !isAgent(change):
	case change.Old != nil && !owner.IsManaged(change.Old):
		c.fail("What is not Masthead's stays", "%s wrote %s in %s: %v", change.Manager, k, cluster.identifier, change.Old.GetLabels())
	case k.Name == unshownName:
		c.fail("Only what the class offers is shown", "%s wrote %s in %s", change.Manager, k, cluster.identifier)
	case c.ownCrossplanes[cluster]:
		c.fail("A cluster with a Crossplane of its own is left alone", "%s wrote %s in %s",
			change.Manager, k, cluster.identifier)
	case !isDeletion(change):
	case !isDefinition && len(change.Old.GetFinalizers()) > 0 || k.GroupResource == compositions && c.isUsed(cluster):
		c.fail("What a Crossplane uses is not deleted", "%s deleted %s in %s", change.Manager, k, cluster.identifier)
	case owner.ID == c.w.hub.id && !c.reduced && c.alwaysShows(fleetv1alpha1.DiscoveryModeFull) && k.Name != ownName:
		c.fail("What is always offered stays shown", "%s deleted %s in %s", change.Manager, k, cluster.identifier)
	case isDefinition && owner.ID == c.w.hub.id:
		c.definitionDeleted(cluster, k.Name)
	}
}

// offerChanged records what the hub no longer shows.
func (c *checker) offerChanged(change apiserver.Change) {
	switch change.Key.GroupResource {
	case classes:
		mode, _ := field(change.New, "spec", "agent", "discovery").(string)
		if field(change.New, "spec", "agent", "mode") == string(fleetv1alpha1.AgentModeDisabled) {
			mode = string(fleetv1alpha1.DiscoveryModeNone)
		}
		c.modes[cmp.Or(fleetv1alpha1.DiscoveryMode(mode), fleetv1alpha1.DiscoveryModeFull)] = true
	case crds, xrds, compositions:
		c.reduced = c.reduced || change.Old != nil && (change.New == nil || change.New.GetDeletionTimestamp() != nil) ||
			change.New != nil && crossplane.IsWithheld(change.New)
	}
}

// alwaysShows reports whether the class has never shown anything but this.
func (c *checker) alwaysShows(modes ...fleetv1alpha1.DiscoveryMode) bool {
	for mode := range c.modes {
		if !slices.Contains(modes, mode) {
			return false
		}
	}
	return true
}

// isUsed reports whether a Crossplane uses the definition of what a cluster's Compositions are for, and has done so for
// longer than a pass takes. Where only definitions are shown, that may be known late.
func (c *checker) isUsed(cluster *workload) bool {
	definition := key(xrds, "", xrdName)
	have, since := cluster.server.Locked(definition), c.foreign[cluster.identifier+definition.String()]
	return have != nil && len(have.GetFinalizers()) > 0 && !since.IsZero() && time.Since(since) > passTime &&
		!c.reduced && c.alwaysShows(fleetv1alpha1.DiscoveryModeFull, fleetv1alpha1.DiscoveryModeNone)
}

// noticed checks that discovery and references write what they have to at once, and not when they look again without a
// reason. What is refused or fails is tried again within less than soon.
func (c *checker) noticed(cluster *workload, change apiserver.Change) {
	if isAgent(change) && c.w.quiet > soon {
		c.fail("What has changed is noticed at once", "%s wrote %s in %s after %s", change.Manager, change.Key, cluster.identifier, c.w.quiet)
	}
}

const soon = 5 * time.Minute

// definitionDeleted checks that Masthead deletes no definition of objects that it has not made, except of one that was
// made meanwhile: Kubernetes has no precondition for that.
func (c *checker) definitionDeleted(cluster *workload, definition string) {
	for _, name := range []string{xrdName, shownName, ownName} {
		k := key(schema.ParseGroupResource(definition), "", name)
		if since := c.foreign[cluster.identifier+k.String()]; !since.IsZero() && time.Since(since) > passTime {
			c.fail("A definition stays for what is not a copy", "that of %s in %s was deleted", k, cluster.identifier)
		}
	}
}

func isDeletion(change apiserver.Change) bool {
	return change.Old != nil && change.Old.GetDeletionTimestamp() == nil && (change.New == nil || change.New.GetDeletionTimestamp() != nil)
}

// isCopy reports whether an object is a copy from the first hub that no Crossplane uses.
func isCopy(obj *unstructured.Unstructured) bool {
	return hubidentity.Owner{ID: "hub-a"}.IsManaged(obj) && len(obj.GetFinalizers()) == 0
}

// copiesSettled checks what every cluster shows of the hub.
func (c *checker) copiesSettled() {
	mode, owner := c.w.shows(), hubidentity.Owner{ID: c.w.hub.id}
	for _, cluster := range c.w.clusters {
		if mode != fleetv1alpha1.DiscoveryModeNone && hasCrossplane(cluster) {
			continue
		}
		for _, kind := range []schema.GroupResource{xrds, compositions} {
			definition := c.w.hub.Get(key(crds, "", kind.String()))
			shown := definition != nil && (mode == fleetv1alpha1.DiscoveryModeFull || mode == fleetv1alpha1.DiscoveryModeDefinitionsOnly && kind == xrds)
			have := cluster.server.Get(key(crds, "", kind.String()))
			switch {
			case have == nil && shown:
				c.fail("What the hub offers is shown", "%s has no definition of %s", cluster.identifier, kind)
			case have == nil || !owner.IsManaged(have) || have.GetDeletionTimestamp() != nil:
			case shown:
				c.kindShown(cluster, kind, definition, have)
			default:
				c.kindWithdrawn(cluster, kind)
			}
		}
	}
}

// hasCrossplane reports whether a cluster has evidence of a Crossplane of its own.
func hasCrossplane(cluster *workload) bool {
	definition := cluster.server.Get(key(crds, "", xrds.String()))
	return definition != nil && !install.GetMarks(definition).IsMastheads() ||
		slices.ContainsFunc(cluster.server.List(xrds), func(obj *unstructured.Unstructured) bool {
			return !install.GetMarks(obj).IsMastheads() || len(obj.GetFinalizers()) > 0
		})
}

// deleteCopies has users delete the copies of the Composition, when everything is at rest. Masthead has to notice.
func (w *world) deleteCopies() bool {
	deleted := false
	if !w.runs.discovery {
		return false
	}
	for _, cluster := range w.clusters {
		if have := cluster.server.Get(key(compositions, "", shownName)); have != nil && isCopy(have) {
			cluster.server.Remove(key(compositions, "", shownName))
			deleted = true
		}
	}
	return deleted
}

// changeOffer changes what the hub shows, when everything is at rest, if some clusters have a Crossplane of their own.
// Nothing is to be written into these.
func (w *world) changeOffer() bool {
	definition := w.hub.Get(key(crds, "", xrds.String()))
	if !w.runs.discovery || w.shows() == fleetv1alpha1.DiscoveryModeNone || definition == nil {
		return false
	}
	for _, cluster := range w.clusters {
		if hasCrossplane(cluster) {
			w.checker.ownCrossplanes[cluster] = true
		}
	}
	if len(w.checker.ownCrossplanes) == 0 {
		return false
	}
	for resource, name := range map[schema.GroupResource]string{xrds: xrdName, compositions: shownName} {
		w.patch(w.hub.Server, "administrator", path(resource, crossplane.XRDKind.Version, "", name),
			map[string]any{"spec": map[string]any{"changes": "at rest"}})
	}
	return true
}

// kindShown checks that a cluster has the copies of a kind, and no others.
func (c *checker) kindShown(cluster *workload, kind schema.GroupResource, definition, have *unstructured.Unstructured) {
	if !reflect.DeepEqual(field(definition, "spec", "names"), field(have, "spec", "names")) {
		c.fail("What the hub offers is shown", "the definition of %s in %s has other names", kind, cluster.identifier)
	}
	offered := map[string]bool{}
	for _, original := range c.w.hub.List(kind) {
		if original.GetName() == unshownName || crossplane.IsWithheld(original) || original.GetDeletionTimestamp() != nil {
			continue
		}
		offered[original.GetName()] = true
		switch shown := cluster.server.Get(key(kind, "", original.GetName())); {
		case shown == nil:
			c.fail("What the hub offers is shown", "%s has no %s %s", cluster.identifier, kind, original.GetName())
		case !(hubidentity.Owner{ID: c.w.hub.id}).IsManaged(shown) || shown.GetDeletionTimestamp() != nil:
		case !reflect.DeepEqual(original.Object["spec"], shown.Object["spec"]) || !reflect.DeepEqual(original.Object["status"], shown.Object["status"]) ||
			original.GetLabels()[teamLabel] != shown.GetLabels()[teamLabel] || shown.GetAnnotations()[hubAnnotation] != "":
			c.fail("A copy is like its original", "%s %s in %s is %v", kind, original.GetName(), cluster.identifier, shown.Object)
		}
	}
	for _, obj := range cluster.server.List(kind) {
		if isCopy(obj) && !offered[obj.GetName()] {
			c.fail("Nothing is left of what is not shown", "%s has %s %s", cluster.identifier, kind, obj.GetName())
		}
	}
}

// kindWithdrawn checks the copies of a kind that is not shown. Its definition stays while it has anything else.
func (c *checker) kindWithdrawn(cluster *workload, kind schema.GroupResource) {
	isUsed := func(obj *unstructured.Unstructured) bool { return len(obj.GetFinalizers()) > 0 }
	if kind == compositions && slices.ContainsFunc(cluster.server.List(xrds), isUsed) {
		return // A Crossplane uses them, too.
	}
	left := cluster.server.List(kind)
	if !slices.ContainsFunc(left, func(obj *unstructured.Unstructured) bool { return !isCopy(obj) }) || slices.ContainsFunc(left, isCopy) {
		c.fail("Nothing is left of what is not shown", "%s has the definition of %s, and %d objects", cluster.identifier, kind, len(left))
	}
}

// field returns a field of an object; nil if there is none.
func field(obj *unstructured.Unstructured, path ...string) any {
	if obj == nil {
		return nil
	}
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, path...)
	return value
}
