// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"
)

func TestValidationOfDiscovery(t *testing.T) {
	discover := func(fields object) object { return with(object{"discover": fields}) }
	kinds := []any{object{"version": "v1", "kind": "Service"}}
	sources := func(list ...any) object { return discover(object{"sources": list, "kinds": kinds}) }
	release := object{"name": "shop", "namespace": "blog"}
	tooMany := func(n int, entry any) []any {
		list := make([]any, n)
		for i := range list {
			list[i] = entry
		}
		return list
	}
	validate(t, map[string]validationCase{
		"EverySource": {reason: "Each way to find objects is one entry.", spec: sources(
			object{"partOf": "shop"}, object{"instance": "Shop_1"}, object{"helmRelease": release}, object{"fluxKustomization": object{"name": "shop"}},
			object{"fluxHelmRelease": release}, object{"argoApplication": release},
			object{"object": object{"group": "rbac.authorization.k8s.io", "version": "v1", "kind": "ClusterRole", "name": "system:reader"}},
		)},
		"OtherNamespaces":   {reason: "Whether they are allowed is for the class to say.", spec: discover(object{"sources": []any{object{"partOf": "shop"}}, "kinds": kinds, "namespaces": []any{"a", "b"}})},
		"Owned":             {reason: "Whether it is allowed is for the class to say.", spec: discover(object{"sources": []any{object{"partOf": "shop"}}, "kinds": kinds, "ownership": "Owned"})},
		"FluxWithoutKinds":  {reason: "An inventory brings its kinds.", spec: discover(object{"sources": []any{object{"fluxKustomization": release}, object{"fluxHelmRelease": release}}})},
		"LabelWithoutKinds": {reason: "A label does not say in which kinds to look.", spec: discover(object{"sources": []any{object{"partOf": "shop"}}}), want: "kinds are required"},
		"NoSource":          {reason: "There is nothing to look for.", spec: discover(object{"sources": []any{}}), want: "should have at least 1 items"},
		"EmptySource":       {reason: "An entry says what to look for.", spec: sources(object{}), want: "exactly one of"},
		"TwoSourcesInOne":   {reason: "It is not said whether both have to be true.", spec: sources(object{"partOf": "shop", "instance": "shop"}), want: "exactly one of"},
		"NotALabel":         {reason: "No object has such a label.", spec: sources(object{"partOf": "a/b"}), want: "it must be a valid value of a label"},
		"NotANamespace":     {reason: "There is no such namespace.", spec: sources(object{"helmRelease": object{"name": "shop", "namespace": "A"}}), want: "a namespace is a DNS label"},
		"NotAKind":          {reason: "Kinds begin with a capital letter.", spec: discover(object{"sources": []any{object{"partOf": "shop"}}, "kinds": []any{object{"version": "v1", "kind": "services"}}}), want: "a kind is a word"},
		"TooManySources":    {reason: "Each is looked for.", spec: sources(tooMany(33, object{"partOf": "shop"})...), want: "at most 32 items"},
		"TooManyKinds":      {reason: "Each is watched.", spec: discover(object{"sources": []any{object{"partOf": "shop"}}, "kinds": tooMany(65, kinds[0])}), want: "at most 64 items"},
		"AnotherOwnership":  {reason: "There are two.", spec: discover(object{"sources": []any{object{"partOf": "shop"}}, "kinds": kinds, "ownership": "Some"}), want: "Unsupported value"},
	})
}
