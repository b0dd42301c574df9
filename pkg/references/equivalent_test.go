// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestMatchesEquivalentResources: an allow-list that contains a resource by one of its names contains it by the other,
// too.
func TestMatchesEquivalentResources(t *testing.T) {
	of := func(group, resource string) schema.GroupResource {
		return schema.GroupResource{Group: group, Resource: resource}
	}
	cases := map[string]struct {
		reason      string
		pattern, gr schema.GroupResource
		want        bool
	}{
		"Same":             {reason: "It is the resource.", pattern: of("", "events"), gr: of("", "events"), want: true},
		"NewGroup":         {reason: "It is the same object.", pattern: of("", "events"), gr: of("events.k8s.io", "events"), want: true},
		"OldGroup":         {reason: "Both ways.", pattern: of("events.k8s.io", "events"), gr: of("", "events"), want: true},
		"AnyOfGroup":       {reason: "Events are among those of the group.", pattern: of("events.k8s.io", "*"), gr: of("", "events"), want: true},
		"Ingresses":        {reason: "As the API server has them.", pattern: of("networking.k8s.io", "ingresses"), gr: of("extensions", "ingresses"), want: true},
		"AnotherResource":  {reason: "The groups are not the same, a resource of them is.", pattern: of("networking.k8s.io", "networkpolicies"), gr: of("extensions", "ingresses")},
		"OtherOfTheGroup":  {reason: "The groups are not the same, a resource of them is.", pattern: of("events.k8s.io", "*"), gr: of("", "configmaps")},
		"EventsOfAnybody":  {reason: "Others may call theirs events, too.", pattern: of("", "events"), gr: of("example.org", "events")},
		"IngressOfAnybody": {reason: "Others may call theirs ingresses, too.", pattern: of("extensions", "ingresses"), gr: of("example.org", "ingresses")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := matches(tc.pattern, tc.gr); got != tc.want {
				t.Errorf("%s Want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

// granted lists one ReferenceGrant.
type granted struct{ grant *unstructured.Unstructured }

func (g granted) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*unstructured.UnstructuredList).Items = []unstructured.Unstructured{*g.grant} //nolint:forcetypeassert // A test.
	return nil
}

func TestReferenceGrants(t *testing.T) {
	event := func(group, version string) Source {
		return Source{
			GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: "Event"}, Resource: "events",
			NamespacedName: types.NamespacedName{Namespace: "team-b", Name: "e"},
		}
	}
	cases := map[string]struct {
		reason string
		spec   string
		in     string
		to     Source
		want   bool
	}{
		"Granted":     {reason: "It names both sides.", spec: `{from: [{group: example.org, kind: Thing, namespace: team-a}], to: [{group: "", kind: Event}]}`, to: event("", "v1"), want: true},
		"Equivalent":  {reason: "By its other name it is the same.", spec: `{from: [{group: example.org, kind: Thing, namespace: team-a}], to: [{group: "", kind: Event, name: e}]}`, to: event("events.k8s.io", "v1"), want: true},
		"Backwards":   {reason: "Both ways.", spec: `{from: [{group: example.org, kind: Thing, namespace: team-a}], to: [{group: events.k8s.io, kind: Event}]}`, to: event("", "v1"), want: true},
		"AnotherName": {reason: "It names another object.", spec: `{from: [{group: example.org, kind: Thing, namespace: team-a}], to: [{group: "", kind: Event, name: f}]}`, to: event("", "v1")},
		"AnotherKind": {reason: "It names another kind.", spec: `{from: [{group: example.org, kind: Thing, namespace: team-a}], to: [{group: example.org, kind: Event}]}`, to: event("", "v1")},
		"NoGroup":     {reason: "A group is required.", spec: `{from: [{kind: Thing, namespace: team-a}], to: [{group: "", kind: Event}]}`, to: event("", "v1")},
		"Elsewhere":   {reason: "Who owns another namespace has no say.", in: "team-c", spec: `{from: [{group: example.org, kind: Thing, namespace: team-a}], to: [{group: "", kind: Event}]}`, to: event("", "v1")},
		"FromAnother": {reason: "It is for others.", spec: `{from: [{group: example.org, kind: Thing, namespace: team-c}], to: [{group: "", kind: Event}]}`, to: event("", "v1")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := tc.in
			if in == "" {
				in = "team-b"
			}
			grant := object(t, "{apiVersion: gateway.networking.k8s.io/v1beta1, kind: ReferenceGrant, metadata: {name: g, namespace: "+in+"}, spec: "+tc.spec+"}")
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(schema.GroupVersionKind{Group: ReferenceGrantResource.Group, Version: "v1beta1", Kind: "ReferenceGrant"}, meta.RESTScopeNamespace)
			got, err := NewReferenceGrants(NewMapper(mapper), granted{grant}).Permits(t.Context(), schema.GroupKind{Group: "example.org", Kind: "Thing"}, "team-a", tc.to)
			if err != nil || got != tc.want {
				t.Errorf("%s Want %v, got %v, %v", tc.reason, tc.want, got, err)
			}
		})
	}
}
