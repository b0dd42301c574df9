// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// WaitForMessage waits until a claim's condition has a reason, and a message that contains all parts.
func (f *Fixture) WaitForMessage(name, reason string, parts ...string) {
	f.T.Helper()
	f.Within(fmt.Sprintf("claim %s says %s about %q", name, reason, parts), func() error {
		u, err := f.GetClaim(f.Workload, f.Namespace, name)
		c := condition.Entry(u, fleetv1alpha1.ConditionAgentSynced)
		if err != nil || c["reason"] != reason {
			return fmt.Errorf("its condition is %v (%w)", c, err)
		}
		for _, part := range parts {
			if !strings.Contains(fmt.Sprint(c["message"]), part) {
				return fmt.Errorf("the message is %q", c["message"])
			}
		}
		return nil
	})
}

// TouchClaim changes a claim, so that it is requeued.
func (f *Fixture) TouchClaim(name string) {
	f.T.Helper()
	u := f.NewClaim(f.Namespace, name)
	f.Edit(f.Workload, u, func() {
		size, _, _ := unstructured.NestedInt64(u.Object, "spec", "storageGB")
		_ = unstructured.SetNestedField(u.Object, size+1, "spec", "storageGB")
	})
}

// MustGetClaim returns a claim in the workload cluster.
func (f *Fixture) MustGetClaim(name string) *unstructured.Unstructured {
	f.T.Helper()
	u, err := f.GetClaim(f.Workload, f.Namespace, name)
	if err != nil {
		f.T.Fatal(err)
	}
	return u
}

// LateInitialize initializes fields of a claim in the hub, as Crossplane does.
func (f *Fixture) LateInitialize(name string, values map[string]string) {
	f.T.Helper()
	hub := f.NewClaim(f.Target, name)
	f.Edit(f.Hub, hub, func() {
		for field, value := range values {
			_ = unstructured.SetNestedField(hub.Object, value, "spec", field, "name")
		}
	})
}

// WaitForSpec waits until a claim's spec has certain names in fields, in the hub or in the workload cluster.
func (f *Fixture) WaitForSpec(c client.Client, namespace, name string, want map[string]string) {
	f.T.Helper()
	f.Within("the spec of "+name+" in "+namespace, func() error {
		u, err := f.GetClaim(c, namespace, name)
		if err != nil {
			return err
		}
		for field, value := range want {
			if got, _, _ := unstructured.NestedString(u.Object, "spec", field, "name"); got != value {
				return fmt.Errorf("%s is %q and not %q", field, got, value)
			}
		}
		return nil
	})
}

// PauseClaim pauses a claim, and waits until its condition says so.
func (f *Fixture) PauseClaim(name string) {
	f.T.Helper()
	f.AnnotateClaim(name, fleetv1alpha1.PausedAnnotation, fleetv1alpha1.PausedAnnotationTrue)
	f.WaitForMessage(name, fleetv1alpha1.ReasonReconcilePaused, fleetv1alpha1.PausedAnnotation)
}

// WaitForRecreated waits until the hub has a new object of a claim.
func (f *Fixture) WaitForRecreated(name string, before types.UID) *unstructured.Unstructured {
	f.T.Helper()
	var now *unstructured.Unstructured
	f.Within("the object of "+name+" is created again", func() (err error) {
		if now, err = f.GetClaim(f.Hub, f.Target, name); err == nil && now.GetUID() == before {
			err = errors.New("it is the old one")
		}
		return err
	})
	return now
}

// DeleteInHub deletes an object in the hub.
func (f *Fixture) DeleteInHub(obj *unstructured.Unstructured) {
	f.T.Helper()
	if err := f.Hub.Delete(f.Ctx, obj); err != nil {
		f.T.Fatal(err)
	}
}

// AnnotateClaim sets an annotation of a claim.
func (f *Fixture) AnnotateClaim(name, key, value string) {
	f.T.Helper()
	u := f.NewClaim(f.Namespace, name)
	f.Edit(f.Workload, u, func() {
		annotations := u.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[key] = value
		u.SetAnnotations(annotations)
	})
}

// WithDeletionPolicy sets the deletion policy annotation of a claim.
func WithDeletionPolicy(policy string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{fleetv1alpha1.DeletionPolicyAnnotation: policy})
	}
}

// ClaimGVK is the kind of the claims.
func (f *Fixture) ClaimGVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: f.Group, Version: "v1alpha1", Kind: "MySQLInstance"}
}

// NewClaimList is an empty list of claims.
func (f *Fixture) NewClaimList() *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(f.ClaimGVK().GroupVersion().WithKind("MySQLInstanceList"))
	return l
}

// NewClaim returns an empty claim.
func (f *Fixture) NewClaim(namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(f.ClaimGVK())
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// CreateClaim creates a claim in the workload cluster.
func (f *Fixture) CreateClaim(name string, edit ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	f.T.Helper()
	f.WaitForServed()
	u := f.NewClaim(f.Namespace, name)
	u.Object["spec"] = map[string]any{"version": "5.7", "storageGB": int64(20)}
	for _, e := range edit {
		e(u)
	}
	f.Create(f.Workload, u)
	return u
}

// GetClaim reads a claim, from the hub or the workload cluster.
func (f *Fixture) GetClaim(c client.Client, namespace, name string) (*unstructured.Unstructured, error) {
	u := f.NewClaim(namespace, name)
	return u, c.Get(f.Ctx, client.ObjectKeyFromObject(u), u)
}

// WaitForPushed waits until a claim is at its target in the hub, and returns it.
func (f *Fixture) WaitForPushed(name string) *unstructured.Unstructured {
	f.T.Helper()
	return f.WaitForPushedTo(f.Target, name)
}

// WaitForPushedTo waits until a claim is in a namespace of the hub, and returns it.
func (f *Fixture) WaitForPushedTo(target, name string) *unstructured.Unstructured {
	f.T.Helper()
	var u *unstructured.Unstructured
	f.Within("claim "+name+" is in "+target, func() (err error) {
		u, err = f.GetClaim(f.Hub, target, name)
		return err
	})
	return u
}

// WaitForSynced waits until a claim in the workload cluster has AgentSynced with a reason, and returns the claim.
func (f *Fixture) WaitForSynced(name, reason string) *unstructured.Unstructured {
	f.T.Helper()
	var u *unstructured.Unstructured
	f.Within("claim "+name+" has AgentSynced with reason "+reason, func() (err error) {
		if u, err = f.GetClaim(f.Workload, f.Namespace, name); err != nil {
			return err
		}
		if c := condition.Entry(u, fleetv1alpha1.ConditionAgentSynced); c["reason"] != reason {
			return fmt.Errorf("its condition is %v", c)
		}
		return nil
	})
	return u
}

// WaitForGone waits until a claim does not exist.
func (f *Fixture) WaitForGone(c client.Client, namespace, name string) {
	f.T.Helper()
	f.Case.WaitForGone(c, f.NewClaim(namespace, name))
}

// MarkReady acts as Crossplane when a claim's composite resource is ready.
func (f *Fixture) MarkReady(name, address string) {
	f.T.Helper()
	f.Within("Crossplane sets the status of "+name, func() error {
		u, err := f.GetClaim(f.Hub, f.Target, name)
		if err != nil {
			return err
		}
		u.Object["status"] = map[string]any{
			"address": address,
			"conditions": []any{
				map[string]any{"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": "2026-01-02T03:04:05Z"},
			},
		}
		return f.Hub.Status().Update(f.Ctx, u)
	})
}

// HasOurFinalizer reports whether a claim bears the finalizer of the fixture's hub.
func HasOurFinalizer(claim *unstructured.Unstructured) bool {
	return slices.Contains(claim.GetFinalizers(), OurFinalizer)
}

// MustNotExist checks that the hub has no claim of that name in a namespace now.
func (f *Fixture) MustNotExist(target, name string) {
	f.T.Helper()
	if _, err := f.GetClaim(f.Hub, target, name); !apierrors.IsNotFound(err) {
		f.T.Errorf("want no claim %q in %q, got %v", name, target, err)
	}
}

// WaitForFinalizers waits until a claim in the workload cluster has certain finalizers.
func (f *Fixture) WaitForFinalizers(name string, want ...string) {
	f.T.Helper()
	f.Within(fmt.Sprintf("claim %s has the finalizers %v", name, want), func() error {
		u, err := f.GetClaim(f.Workload, f.Namespace, name)
		if err == nil && !slices.Equal(u.GetFinalizers(), want) {
			err = fmt.Errorf("it has %v", u.GetFinalizers())
		}
		return err
	})
}
