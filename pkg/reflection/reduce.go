// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/masthead-dev/masthead/pkg/apply"
)

// guards are the fields of specs that keep controllers from acting, and by which objects find each other.
var guards = []string{
	"identityRef", "credentialsRef", "infrastructureRef", "controlPlaneRef", "paused", "clusterName",
	"template.spec.infrastructureRef", "template.spec.bootstrap", "template.spec.clusterName",
	// These are never wanted: with them, Cluster API core acts.
	"providerIDList", "topology",
}

func isGuard(field string) bool {
	return slices.ContainsFunc(guards, func(guard string) bool { return guard == field || strings.HasPrefix(guard, field+".") })
}

// essential are the fields of specs that say which cluster or pool an object stands for, and where its API server is.
var essential = []string{
	"controlPlaneEndpoint", "endpoint", "eksClusterName", "eksNodegroupName", "nodePoolName", "name", "project", "region", "location",
	"subscriptionID", "resourceGroupName",
}

func specOf(o *unstructured.Unstructured) map[string]any {
	if o == nil {
		return nil
	}
	spec, _ := o.Object["spec"].(map[string]any)
	return spec
}

// Reduce returns an object without what a hub refuses: some fields of its spec, or, if none are given, all that it does
// not need. If the object is there, these fields keep their values, because what is refused may be their change.
func Reduce(full, live *unstructured.Unstructured, schemas Schemas, fields []string, reason string) (*unstructured.Unstructured, []Lossy) {
	reduced := full.DeepCopy()
	wanted, spec, has := specOf(full), specOf(reduced), specOf(live)
	all := len(fields) == 0
	if all {
		kept := slices.Clone(essential)
		if s := at(schemas[full.GroupVersionKind().GroupKind()].JSONSchemaProps, []string{"spec"}); s != nil {
			kept = append(kept, s.Required...)
		}
		fields = slices.DeleteFunc(append(slices.Collect(maps.Keys(wanted)), slices.Collect(maps.Keys(has))...), func(field string) bool {
			return isGuard(field) || slices.Contains(kept, field)
		})
	}
	var lossy []Lossy
	for _, field := range slices.Compact(slices.Sorted(slices.Values(fields))) {
		want, isWanted := wanted[field]
		value, isThere := has[field]
		delete(spec, field)
		if isThere {
			_ = unstructured.SetNestedField(reduced.Object, value, "spec", field)
		}
		// Of what nothing was observed, there may be a default.
		if isWanted && (!isThere || !apply.Covers(value, want)) || !isWanted && !all {
			lossy = append(lossy, lossyField(full, field, want, value, reason))
		}
	}
	if len(lossy) == 0 {
		lossy = append(lossy, Lossy{Object: full.GetKind() + "/" + full.GetName(), Field: "spec", Reason: reason})
	}
	return reduced, lossy
}

func lossyField(of *unstructured.Unstructured, field string, observed, reflected any, reason string) Lossy {
	return Lossy{
		Object: of.GetKind() + "/" + of.GetName(), Field: "spec." + field,
		Observed: clean(scalar(observed)), Default: clean(scalar(reflected)), Reason: reason,
	}
}

var specField = regexp.MustCompile(`(?i)\bspec\.([a-z0-9_]+)`)

// RefusedFields are the fields of an object's spec that a refusal names. Webhooks spell some as their Go types do. No
// refusal costs an object its guards.
func RefusedFields(full, live *unstructured.Unstructured, refusal string) []string {
	var fields []string
	for _, m := range specField.FindAllStringSubmatch(refusal, -1) {
		for _, spec := range []map[string]any{specOf(full), specOf(live)} {
			for field := range spec {
				if strings.EqualFold(field, m[1]) && !isGuard(field) && !slices.Contains(fields, field) {
					fields = append(fields, field)
				}
			}
		}
	}
	slices.Sort(fields)
	return fields
}

// Overwritten is what an object does not have as it was written: a webhook or another client of the hub changes it.
func Overwritten(written, live *unstructured.Unstructured) []Lossy {
	var lossy []Lossy
	for _, field := range slices.Sorted(maps.Keys(specOf(written))) {
		want, is := specOf(written)[field], specOf(live)[field]
		if !apply.Covers(specOf(live), map[string]any{field: want}) {
			lossy = append(lossy, lossyField(written, field, want, is, "A webhook or another client of the hub changes the field"))
		}
	}
	return lossy
}

// IsGuarded reports whether an object has everything wanted that keeps controllers from acting.
func IsGuarded(live, want *unstructured.Unstructured) bool {
	for key, value := range want.GetLabels() {
		if live.GetLabels()[key] != value {
			return false
		}
	}
	for _, key := range []string{clusterv1.ManagedByAnnotation, clusterv1.PausedAnnotation} {
		if value, ok := want.GetAnnotations()[key]; ok && live.GetAnnotations()[key] != value {
			return false
		}
	}
	for _, guard := range guards {
		path := append([]string{"spec"}, strings.Split(guard, ".")...)
		value, isWanted, _ := unstructured.NestedFieldNoCopy(want.Object, path...)
		is, isThere, _ := unstructured.NestedFieldNoCopy(live.Object, path...)
		if isWanted && !apply.Covers(is, value) || !isWanted && isThere && guard != "paused" {
			return false
		}
	}
	return true
}
