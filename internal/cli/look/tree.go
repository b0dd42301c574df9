// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package look

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/internal/cli/fleet"
	"github.com/masthead-dev/masthead/internal/cli/why"
	"github.com/masthead-dev/masthead/pkg/health"
)

// A Tree is an Application, a component, or an object that a component owns, and its health.
type Tree struct {
	why.Ref

	Health  string `json:"health"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Parts   []Tree `json:"parts,omitempty"`
}

// ApplicationTree reads an Application with its components and the objects they own, or returns a NotFound error. The
// health of a component is Masthead's; that of owned objects is computed here, by the shipped rules.
func ApplicationTree(ctx context.Context, side *fleet.ClusterClient, namespace, name string) (*Tree, error) {
	obj, err := side.Get(ctx, ApplicationKind(), types.NamespacedName{Namespace: namespace, Name: name})
	if isNoMatch(err) || errors.Is(err, fleet.ErrNoSuchKind) {
		err = apierrors.NewNotFound(appsv1alpha1.GroupVersion.WithResource("applications").GroupResource(), name)
	}
	if err != nil {
		return nil, err
	}
	app := &appsv1alpha1.Application{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, app); err != nil {
		return nil, err
	}
	library, err := health.NewLibrary()
	if err != nil {
		return nil, err
	}
	judge := library.New()
	root := &Tree{Ref: newRef(side, obj.GetKind(), namespace, name), Health: string(app.Status.Health), Message: app.Status.Message}
	for _, c := range app.Status.Components {
		object := c.Name
		if other := app.Spec.Components[c.Name].Name; other != "" {
			object = other
		}
		part := Tree{Ref: newRef(side, c.Kind, namespace, object), Health: string(c.Health), Reason: c.Reason, Message: c.Message}
		root.Parts = append(root.Parts, grow(ctx, side, judge, part, schema.GroupVersionKind{Group: c.Group, Version: c.Version, Kind: c.Kind}))
	}
	for _, d := range app.Status.Discovered {
		part := Tree{Ref: newRef(side, d.Kind, d.Namespace, d.Name), Health: string(d.Health), Reason: d.Reason, Message: d.Message}
		if d.Name == "" {
			root.Parts = append(root.Parts, part)
			continue
		}
		root.Parts = append(root.Parts, grow(ctx, side, judge, part, schema.GroupVersionKind{Group: d.Group, Version: d.Version, Kind: d.Kind}))
	}
	if pod := app.Status.HealthCheckPod; pod != "" {
		part := Tree{Ref: newRef(side, podKind().Kind, namespace, pod), Health: string(appsv1alpha1.HealthUnknown), Message: "health check"}
		if obj, err := side.Get(ctx, podKind(), types.NamespacedName{Namespace: namespace, Name: pod}); err == nil {
			part = branch(ctx, side, judge, obj)
			part.Message = "health check " + part.Message
		}
		root.Parts = append(root.Parts, part)
	}
	return root, nil
}

// grow adds the owned objects to a component, if they can be read.
func grow(ctx context.Context, side *fleet.ClusterClient, judge health.Assessor, part Tree, kind schema.GroupVersionKind) Tree {
	if ownedKinds(kind.GroupKind()) == nil {
		return part
	}
	obj, err := side.Get(ctx, kind, types.NamespacedName{Namespace: part.Namespace, Name: part.Name})
	if err != nil {
		return part // Its health is reported already.
	}
	part.Parts = branch(ctx, side, judge, obj).Parts
	return part
}

func branch(ctx context.Context, side *fleet.ClusterClient, judge health.Assessor, obj *unstructured.Unstructured) Tree {
	result := judge.Assess(obj, true)
	t := Tree{
		Ref:    newRef(side, obj.GetKind(), obj.GetNamespace(), obj.GetName()),
		Health: string(result.Health), Reason: result.Reason, Message: result.Message,
	}
	owned, err := OwnedBy(ctx, side, obj)
	for _, o := range owned {
		t.Parts = append(t.Parts, branch(ctx, side, judge, o))
	}
	if err != nil {
		t.Parts = append(t.Parts, Tree{Ref: newRef(side, podKind().Kind, obj.GetNamespace(), "*"), Health: string(appsv1alpha1.HealthUnknown), Message: fleet.Explain(err)})
	}
	return t
}
