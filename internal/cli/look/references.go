// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package look

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	"github.com/masthead-dev/masthead/internal/cli/fleet"
	"github.com/masthead-dev/masthead/internal/cli/why"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// sources returns the sources of an object's required references, if they are unresolved.
func (l *Collector) sources(ctx context.Context, side *fleet.ClusterClient, obj *unstructured.Unstructured) []*why.Thing {
	spec, _, _ := unstructured.NestedMap(obj.Object, "spec")
	var refs commonv1alpha1.References
	if condition.IsTrue(obj, commonv1alpha1.ConditionReferencesResolved) || spec["references"] == nil ||
		runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"references": spec["references"]}, &refs) != nil {
		return nil
	}
	var out []*why.Thing
	for i := range refs.References {
		r := &refs.References[i]
		if r.IsOptional() {
			continue
		}
		from := []commonv1alpha1.ReferenceSource{r.Source()}
		if len(r.Variables) > 0 {
			from = nil
			for _, v := range r.Variables {
				from = append(from, v.FromRef)
			}
		}
		for _, s := range from {
			t := l.source(ctx, side, obj, s)
			if !slices.ContainsFunc(out, func(other *why.Thing) bool { return other.Ref == t.Ref }) {
				out = append(out, t)
			}
		}
	}
	return out
}

func (l *Collector) source(ctx context.Context, side *fleet.ClusterClient, obj *unstructured.Unstructured, s commonv1alpha1.ReferenceSource) *why.Thing {
	namespace := ptr.Deref(s.Namespace, obj.GetNamespace())
	kind, err := side.KindOfResource(schema.GroupVersionResource{Group: ptr.Deref(s.Group, ""), Version: ptr.Deref(s.Version, ""), Resource: s.Resource})
	if err != nil {
		t := &why.Thing{Ref: newRef(side, s.Resource, namespace, s.Name), Role: why.RoleSource}
		return present(t, nil, err)
	}
	return l.thing(ctx, side, why.RoleSource, kind, namespace, s.Name)
}
