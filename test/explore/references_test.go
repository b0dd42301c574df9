// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// What users of a workload cluster have in each namespace. A Subnet has one reference.
const (
	settingsName = "settings"
	mainName     = "main"
	followerName = "follower"
	grantName    = "grant"

	subnetGroup = "network.example.org"
	grantGroup  = "gateway.networking.k8s.io"
)

var (
	configMaps = schema.GroupResource{Resource: "configmaps"}
	subnets    = schema.GroupResource{Group: subnetGroup, Resource: "subnets"}
	grants     = schema.GroupResource{Group: grantGroup, Resource: "referencegrants"}
)

// reference is a reference that a Subnet can have.
type reference struct {
	what     string
	of       string
	resource schema.GroupResource
	name     string
	from, to []string
	// elsewhere means the namespace of the other team, and follows that the field follows its source.
	elsewhere, follows bool
}

var (
	regionPath = []string{"spec", "forProvider", "region"}
	tokenPath  = []string{"spec", "forProvider", "token"}
)

// allReferences returns the references of the two Subnets of a namespace. Only the token may hold what is secret.
func allReferences() []reference {
	data, own := []string{"data", "region"}, []string{"data", "own"}
	var out []reference
	for _, follows := range []bool{false, true} {
		out = append(out,
			reference{"its settings", mainName, configMaps, settingsName, data, regionPath, false, follows},
			reference{"the other team's settings", mainName, configMaps, settingsName, data, regionPath, true, follows},
			reference{"the Secret", mainName, secrets, secretName, own, regionPath, false, follows},
			reference{"the Secret for its token", mainName, secrets, secretName, own, tokenPath, false, follows},
			reference{"its follower", mainName, subnets, followerName, regionPath, regionPath, false, follows},
			reference{"main", followerName, subnets, mainName, regionPath, regionPath, false, follows},
			reference{"the token of main", followerName, subnets, mainName, tokenPath, regionPath, false, follows},
		)
	}
	return out
}

// namespace returns the namespace that a reference of an object in another one leads to.
func (r reference) namespace(team string) string {
	if r.elsewhere {
		return otherTeam(team)
	}
	return team
}

func otherTeam(team string) string {
	return map[string]string{"team-1": "team-2", "team-2": "team-1"}[team]
}

func (r reference) policy() commonv1alpha1.ResolvePolicy {
	if r.follows {
		return commonv1alpha1.ResolveAlways
	}
	return commonv1alpha1.ResolveOnce
}

// spec returns spec.references.
func (r reference) spec(team string) []any {
	return []any{map[string]any{
		"group": r.resource.Group, "resource": r.resource.Resource, "namespace": r.namespace(team), "name": r.name,
		"fromFieldPath": strings.Join(r.from, "."), "toFieldPath": strings.Join(r.to, "."),
		"policy": map[string]any{"resolve": string(r.policy()), "resolution": string(commonv1alpha1.ResolutionRequired)},
	}}
}

// referenceOf returns the reference of a Subnet.
func referenceOf(obj *unstructured.Unstructured) reference {
	all := allReferences()
	return all[slices.IndexFunc(all, func(r reference) bool {
		return r.of == obj.GetName() && reflect.DeepEqual(field(obj, "spec", "references"), r.spec(obj.GetNamespace()))
	})]
}

// referrers returns what users of a namespace can do about references.
func (w *world) referrers(c *workload, team string) []option {
	if ns := c.server.Get(key(namespaces, "", team)); ns == nil || ns.GetDeletionTimestamp() != nil {
		return nil
	}
	who := "user of " + c.identifier + "/" + team
	data := map[string]any{"region": fmt.Sprintf("%s.%s.%d", c.identifier, team, c.server.Version())}
	settings := object("v1", "ConfigMap", team, settingsName, nil)
	settings.Object["data"] = data
	out := w.lifecycle(c.server, who, configMaps, settings,
		edit{"changes the settings", map[string]any{"data": data}}, edit{"empties the settings", map[string]any{"data": nil}})
	out = append(out, w.lifecycle(c.server, who, grants, grant(team))...)
	for _, name := range []string{mainName, followerName} {
		fill := func(region, token any) map[string]any {
			return map[string]any{"spec": map[string]any{"forProvider": map[string]any{"region": region, "token": token}}}
		}
		origin := map[string]any{fleetv1alpha1.ReleasedFromAnnotation: "a/elsewhere"}
		edits := []edit{
			{"empties " + name, fill(nil, nil)}, {"fills " + name, fill("byhand", "byhand")},
			{"makes a copy of another's of " + name, map[string]any{"metadata": map[string]any{"annotations": origin}}},
		}
		subnet := object(subnetGroup+"/v1alpha1", "Subnet", team, name, nil)
		for _, r := range allReferences() {
			if r.of != name {
				continue
			}
			spec := map[string]any{"forProvider": map[string]any{}, "references": r.spec(team)}
			if subnet.Object["spec"] == nil {
				subnet.Object["spec"] = spec
			}
			edits = append(edits, edit{fmt.Sprintf("has %s reference %s %s", name, r.what, r.policy()), map[string]any{"spec": spec}})
		}
		out = append(out, w.lifecycle(c.server, who, subnets, subnet, edits...)...)
	}
	return out
}

// grant permits the Subnets of the other team to reference the settings of a namespace.
func grant(team string) *unstructured.Unstructured {
	return object(grantGroup+"/v1beta1", "ReferenceGrant", team, grantName, map[string]any{
		"from": []any{map[string]any{"group": subnetGroup, "kind": "Subnet", "namespace": otherTeam(team)}},
		"to":   []any{map[string]any{"group": "", "kind": "ConfigMap"}},
	})
}

// resolves returns what the administrator of the hub can do about references.
func (w *world) resolves() []option {
	next := fleetv1alpha1.ReferencesModeEnabled
	if w.referencesMode() == next {
		next = fleetv1alpha1.ReferencesModeDisabled
	}
	return w.edits(w.hub.Server, "administrator", classes, class(), edit{"sets the references " + string(next), map[string]any{
		"spec": map[string]any{"references": map[string]any{"mode": string(next)}},
	}})
}

func (w *world) referencesMode() fleetv1alpha1.ReferencesMode {
	mode, _ := field(w.hub.Get(key(classes, "", className)), "spec", "references", "mode").(string)
	return fleetv1alpha1.ReferencesMode(mode)
}
