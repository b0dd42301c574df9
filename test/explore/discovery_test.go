// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/test/explore/apiserver"
)

// The Compositions of a world: the hub's, one of the hub's for a group that the class does not offer, and one of the
// users of a workload cluster.
const (
	shownName   = "mysql"
	unshownName = "unshown"
	ownName     = "own"
)

var compositions = schema.GroupResource{Group: xrds.Group, Resource: "compositions"}

func composition(name, group string) *unstructured.Unstructured {
	obj := object(crossplane.XRDKind.GroupVersion().String(), "Composition", "", name, map[string]any{
		"compositeTypeRef": map[string]any{"apiVersion": group + "/v1alpha1", "kind": "X" + claimKind},
	})
	obj.SetLabels(map[string]string{teamLabel: "databases"})
	obj.SetAnnotations(map[string]string{hubAnnotation: "stays in the hub"})
	return obj
}

// A label that copies have, and an annotation that they do not.
const (
	teamLabel     = "example.org/team"
	hubAnnotation = "example.org/hub"
)

func compositionCRD() *unstructured.Unstructured {
	return crd(compositions, crossplane.XRDKind.Version, "Composition", "Cluster", nil)
}

// fillOffer makes what the administrator of a hub offers besides claims.
func (w *world) fillOffer(s *apiserver.Server) {
	w.create(s, crds, compositionCRD(), nil)
	w.settleServer(s)
	w.create(s, compositions, composition(shownName, claimGroup), map[string]any{"seen": "by Crossplane"})
	w.create(s, compositions, composition(unshownName, "network.example.org"), nil)
}

// offers returns what the administrator of the hub can do about what is shown.
func (w *world) offers() []option {
	shown := composition(shownName, claimGroup)
	var edits []edit
	if have := w.hub.Get(key(compositions, "", shownName)); have != nil {
		edits = []edit{
			{"changes the Composition", map[string]any{"spec": map[string]any{"changes": have.GetGeneration()}}},
			{"sets the label publish of the Composition", map[string]any{"metadata": map[string]any{
				"labels": map[string]any{fleetv1alpha1.PublishLabel: strconv.FormatBool(crossplane.IsWithheld(have))},
			}}},
		}
	}
	out := w.lifecycle(w.hub.Server, "administrator", crds, compositionCRD())
	out = append(out, w.lifecycle(w.hub.Server, "administrator", compositions, shown, edits...)...)
	next := map[fleetv1alpha1.DiscoveryMode]fleetv1alpha1.DiscoveryMode{
		fleetv1alpha1.DiscoveryModeFull:            fleetv1alpha1.DiscoveryModeDefinitionsOnly,
		fleetv1alpha1.DiscoveryModeDefinitionsOnly: fleetv1alpha1.DiscoveryModeNone,
		fleetv1alpha1.DiscoveryModeNone:            fleetv1alpha1.DiscoveryModeFull,
	}[w.shows()]
	return append(out, w.edits(w.hub.Server, "administrator", classes, class(), edit{"shows " + string(next), map[string]any{
		"spec": map[string]any{"agent": map[string]any{"discovery": string(next)}},
	}})...)
}

// shows returns how much of the hub the class shows.
func (w *world) shows() fleetv1alpha1.DiscoveryMode {
	mode, _ := field(w.hub.Get(key(classes, "", className)), "spec", "agent", "discovery").(string)
	return cmp.Or(fleetv1alpha1.DiscoveryMode(mode), fleetv1alpha1.DiscoveryModeFull)
}

// copies returns what users of a workload cluster, or a Crossplane there, can do with copies and their definitions. No
// policy prevents it, as in a cluster that does not serve any.
func (w *world) copies(c *workload) []option {
	who := "user of " + c.identifier
	metadata := func(field string, value any) map[string]any {
		return map[string]any{"metadata": map[string]any{field: value}}
	}
	out := w.lifecycle(c.server, who, compositions, composition(ownName, claimGroup))
	for resource, obj := range map[schema.GroupResource]*unstructured.Unstructured{xrds: xrd(), compositions: composition(shownName, claimGroup)} {
		what := " the " + obj.GetKind()
		disown := metadata("labels", map[string]any{fleetv1alpha1.ManagedByLabel: nil})
		out = append(out, w.lifecycle(c.server, who, resource, obj,
			edit{"changes" + what, map[string]any{"spec": map[string]any{"changes": "a user's"}}},
			edit{"takes over" + what, disown},
			edit{"has Crossplane use" + what, metadata("finalizers", []any{crossplaneFinalizer})})...)
		if have := c.server.Get(key(resource, "", obj.GetName())); have != nil && len(have.GetFinalizers()) > 0 {
			out = append(out, w.edits(c.server, who, resource, obj, edit{"has Crossplane release" + what, metadata("finalizers", nil)})...)
		}
		definition := crd(resource, crossplane.XRDKind.Version, obj.GetKind(), "Cluster", nil)
		names := map[string]any{"spec": map[string]any{"names": map[string]any{"shortNames": []any{"x"}}}}
		out = append(out, w.lifecycle(c.server, who, crds, definition,
			edit{"changes the definition of" + what, names}, edit{"takes over the definition of" + what, disown})...)
	}
	return out
}
