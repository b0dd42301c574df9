// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package look

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/cli/fleet"
	"github.com/masthead-dev/masthead/internal/cli/why"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/crossplane"
)

// claim follows a claim from its cluster into the hub.
func (l *Collector) claim(ctx context.Context, c *fleet.Cluster, side *fleet.ClusterClient, kind schema.GroupVersionKind, t *why.Thing) *why.Thing {
	t.Role = why.RoleClaim
	publisher, crd := l.findPublisher(ctx, kind.GroupKind())
	t.Needs = append(t.Needs, l.cluster(ctx, c, why.For{Use: why.UseClaims, Definition: crd}))
	if publisher != nil && (t.Object == nil || !synced(t.Object)) {
		t.Needs = append(t.Needs, publisher)
	}
	if t.Object != nil && side != nil {
		t.Needs = append(t.Needs, l.sources(ctx, side, t.Object)...)
	}
	return l.counterpart(ctx, c, side, kind, t)
}

// counterpart adds the hub's object of the claim's name, in its current or target namespace.
func (l *Collector) counterpart(ctx context.Context, c *fleet.Cluster, side *fleet.ClusterClient, kind schema.GroupVersionKind, t *why.Thing) *why.Thing {
	namespace := l.findTarget(ctx, c, side, t)
	if namespace == "" {
		return t
	}
	if t.Object != nil && agentReason(t.Object) == fleetv1alpha1.ReasonTargetNamespaceMissing {
		t.Needs = append(t.Needs, l.thing(ctx, l.hub.ClusterClient, why.RoleNamespace, corev1.SchemeGroupVersion.WithKind("Namespace"), "", namespace))
		return t
	}
	in := l.thing(ctx, l.hub.ClusterClient, why.RoleHub, schema.GroupVersionKind{Group: kind.Group, Kind: kind.Kind}, namespace, t.Ref.Name)
	if in.Object == nil {
		if in.Absent == why.NotLooked || t.Object != nil && synced(t.Object) {
			t.Needs = append(t.Needs, in)
		}
		return t
	}
	if source, named := ownership.GetSource(in.Object); !named || source.Identifier != c.Identifier || source.Namespace != t.Ref.Namespace {
		in.Role, in.Note = why.RoleHolder, "has the name: "+l.Holder(in.Object)
		t.Needs = append(t.Needs, in)
		return t
	}
	t.Needs = append(t.Needs, l.composed(ctx, in))
	return t
}

// Holder returns the owner of an object in the hub.
func (l *Collector) Holder(obj *unstructured.Unstructured) string {
	source, named := ownership.GetSource(obj)
	if !named {
		return ownership.DescribeHolder(obj)
	}
	if c := fleet.ByIdentifier(l.clusters, source.Identifier); c != nil {
		return fmt.Sprintf("the namespace %q of the cluster %s", source.Namespace, c.Name)
	}
	return ownership.DescribeHolder(obj)
}

// findTarget returns the namespace of the hub in which a claim is or, as far as can be seen, would go.
func (l *Collector) findTarget(ctx context.Context, c *fleet.Cluster, side *fleet.ClusterClient, t *why.Thing) string {
	if t.Object != nil {
		if record, ok := ownership.GetRecord(t.Object); ok {
			return record.Namespace
		}
	}
	if side != nil && t.Object != nil {
		ns := l.thing(ctx, side, why.RoleNamespace, corev1.SchemeGroupVersion.WithKind("Namespace"), "", t.Ref.Namespace)
		if ns.Object != nil && ns.Object.GetAnnotations()[fleetv1alpha1.TargetNamespaceAnnotation] != "" {
			return ns.Object.GetAnnotations()[fleetv1alpha1.TargetNamespaceAnnotation]
		}
	}
	class := l.thing(ctx, l.hub.ClusterClient, why.RoleClass, classKind(), "", c.Class)
	if class.Object == nil {
		return ""
	}
	if match, _, _ := unstructured.NestedBool(class.Object.Object, "spec", "agent", "matchNamespaces"); match {
		return t.Ref.Namespace
	}
	target, _, _ := unstructured.NestedString(class.Object.Object, "spec", "agent", "defaultTargetNamespace")
	return target
}

// findPublisher finds the CompositeResourceDefinition of a kind, and the name of the kind's CustomResourceDefinition.
func (l *Collector) findPublisher(ctx context.Context, kind schema.GroupKind) (_ *why.Thing, crd string) {
	list, err := l.hub.List(ctx, crossplane.XRDKind.GroupVersionKind)
	if err != nil {
		return nil, ""
	}
	for _, xrd := range list {
		group, _, _ := unstructured.NestedString(xrd.Object, "spec", "group")
		for _, field := range []string{"claimNames", "names"} {
			name, _, _ := unstructured.NestedString(xrd.Object, "spec", field, "kind")
			plural, _, _ := unstructured.NestedString(xrd.Object, "spec", field, "plural")
			if group == kind.Group && name == kind.Kind {
				t := &why.Thing{Ref: newRef(l.hub.ClusterClient, xrd.GetKind(), "", xrd.GetName()), Role: why.RolePublisher, Object: xrd}
				return t, plural + "." + group
			}
		}
	}
	return nil, ""
}

// publisher reads a CompositeResourceDefinition, and the clusters that refuse its definition.
func (l *Collector) publisher(ctx context.Context, t *why.Thing) *why.Thing {
	if t.Object == nil {
		return t
	}
	group, _, _ := unstructured.NestedString(t.Object.Object, "spec", "group")
	for _, field := range []string{"claimNames", "names"} {
		plural, _, _ := unstructured.NestedString(t.Object.Object, "spec", field, "plural")
		if plural == "" {
			continue
		}
		for i := range l.clusters {
			if l.clusters[i].State == fleet.StateConnected {
				t.Needs = append(t.Needs, l.cluster(ctx, &l.clusters[i], why.For{Definition: plural + "." + group}))
			}
		}
		return t
	}
	return t
}

func synced(claim *unstructured.Unstructured) bool {
	return condition.IsTrue(claim, fleetv1alpha1.ConditionAgentSynced)
}

// agentReason returns the reason of the condition AgentSynced, or "".
func agentReason(claim *unstructured.Unstructured) string {
	c, _ := condition.Find(claim, fleetv1alpha1.ConditionAgentSynced)
	return c.Reason
}
