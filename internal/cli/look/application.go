// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package look

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/internal/cli/fleet"
	"github.com/masthead-dev/masthead/internal/cli/why"
)

func podKind() schema.GroupVersionKind { return schema.GroupVersionKind{Version: "v1", Kind: "Pod"} }

// application follows an Application to its unhealthy components.
func (l *Collector) application(ctx context.Context, c *fleet.Cluster, side *fleet.ClusterClient, t *why.Thing) *why.Thing {
	leave, ok := l.enter(t.Ref)
	if !ok {
		return t
	}
	defer leave()
	t.Role = why.RoleApplication
	t.Needs = append(t.Needs, l.cluster(ctx, c, why.For{Use: why.UseApplications, Definition: "applications." + appsv1alpha1.GroupVersion.Group}))
	if t.Object == nil {
		return t
	}
	app := &appsv1alpha1.Application{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(t.Object.Object, app); err != nil {
		t.Reported = append(t.Reported, why.Finding{Severity: why.Unseen, Reason: why.ReasonNotLookedAt, Message: "Its status cannot be read."})
		return t
	}
	for _, entry := range app.Status.Components {
		if entry.Health == appsv1alpha1.HealthHealthy || entry.Ignored {
			continue
		}
		name := entry.Name
		if other := app.Spec.Components[entry.Name].Name; other != "" {
			name = other
		}
		kind := schema.GroupVersionKind{Group: entry.Group, Version: entry.Version, Kind: entry.Kind}
		t.Needs = append(t.Needs, l.component(ctx, c, side, kind, app.Namespace, name, why.ComponentFinding(entry.Health, entry.Reason, entry.Message)))
	}
	for _, entry := range app.Status.Discovered {
		if entry.Health == appsv1alpha1.HealthHealthy || entry.Ignored || entry.Name == "" {
			continue
		}
		kind := schema.GroupVersionKind{Group: entry.Group, Version: entry.Version, Kind: entry.Kind}
		t.Needs = append(t.Needs, l.component(ctx, c, side, kind, entry.Namespace, entry.Name, why.ComponentFinding(entry.Health, entry.Reason, entry.Message)))
	}
	for _, d := range app.Status.Dependencies {
		if d.Ready != "True" {
			t.Needs = append(t.Needs, l.application(ctx, c, side, l.thing(ctx, side, why.RoleApplication, ApplicationKind(), app.Namespace, d.Name)))
		}
	}
	if app.Status.HealthCheckPod != "" {
		t.Needs = append(t.Needs, l.thing(ctx, side, why.RoleObject, podKind(), app.Namespace, app.Status.HealthCheckPod))
	}
	return t
}

// ApplicationKind is the kind of Applications.
func ApplicationKind() schema.GroupVersionKind {
	return appsv1alpha1.GroupVersion.WithKind("Application")
}

// component reads a component of an Application: a claim is followed into the hub, a workload to its Pods.
func (l *Collector) component(
	ctx context.Context, c *fleet.Cluster, side *fleet.ClusterClient, kind schema.GroupVersionKind, namespace, name string, finding why.Finding,
) *why.Thing {
	t := l.thing(ctx, side, why.RoleObject, kind, namespace, name)
	t.Reported = append(t.Reported, finding)
	if t.Object == nil {
		return t
	}
	if agentReason(t.Object) != "" {
		return l.claim(ctx, c, side, t.Object.GroupVersionKind(), t)
	}
	t.Needs = append(t.Needs, l.sources(ctx, side, t.Object)...)
	return l.owned(ctx, side, t)
}

// owned adds what Kubernetes' workload kinds own: active ReplicaSets, and Pods.
func (l *Collector) owned(ctx context.Context, side *fleet.ClusterClient, t *why.Thing) *why.Thing {
	needs, err := OwnedBy(ctx, side, t.Object)
	if err != nil {
		t.Needs = append(t.Needs, absent(&why.Thing{Ref: newRef(side, "Pod", t.Ref.Namespace, "*"), Role: why.RoleObject}, why.NotLooked, fleet.Explain(err)))
	}
	for _, obj := range needs {
		l.looked++
		need := &why.Thing{Ref: newRef(side, obj.GetKind(), obj.GetNamespace(), obj.GetName()), Role: why.RoleObject, Object: obj}
		t.Needs = append(t.Needs, l.owned(ctx, side, need))
	}
	return t
}

// OwnedBy lists the objects that a Kubernetes workload owns.
func OwnedBy(ctx context.Context, side *fleet.ClusterClient, obj *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, kind := range ownedKinds(obj.GroupVersionKind().GroupKind()) {
		list, err := side.List(ctx, kind, inNamespace(obj.GetNamespace()))
		if err != nil {
			return out, err
		}
		for _, item := range list {
			if replicas, found, _ := unstructured.NestedInt64(item.Object, "spec", "replicas"); found && replicas == 0 {
				continue // A revision of a Deployment that is not wanted any more.
			}
			for _, owner := range item.GetOwnerReferences() {
				if owner.UID == obj.GetUID() && owner.UID != "" {
					out = append(out, item)
				}
			}
		}
	}
	return out, nil
}

// ownedKinds returns the kinds that a Kubernetes workload owns, down to Pods.
func ownedKinds(owner schema.GroupKind) []schema.GroupVersionKind {
	switch owner {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		return []schema.GroupVersionKind{{Group: "apps", Version: "v1", Kind: "ReplicaSet"}}
	case schema.GroupKind{Group: "batch", Kind: "CronJob"}:
		return []schema.GroupVersionKind{{Group: "batch", Version: "v1", Kind: "Job"}}
	case schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, schema.GroupKind{Group: "apps", Kind: "StatefulSet"},
		schema.GroupKind{Group: "apps", Kind: "DaemonSet"}, schema.GroupKind{Group: "batch", Kind: "Job"},
		schema.GroupKind{Kind: "ReplicationController"}:
		return []schema.GroupVersionKind{podKind()}
	}
	return nil
}
