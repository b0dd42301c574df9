// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discoverytest

import (
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/pkg/crossplane"
)

// XRDCRD and CompositionCRD are the names of the definitions.
const (
	XRDCRD         = "compositeresourcedefinitions.apiextensions.crossplane.io"
	CompositionCRD = "compositions.apiextensions.crossplane.io"
)

// XRDKind and CompositionKind are the kinds that platform teams create.
var (
	XRDKind         = crossplane.XRDKind.GroupVersionKind
	CompositionKind = crossplane.XRDKind.GroupVersion().WithKind("Composition")
)

// SameContent checks that a copy has the content of the hub's object, except for how versions are converted.
func SameContent(hub *unstructured.Unstructured) func(*unstructured.Unstructured) error {
	return func(got *unstructured.Unstructured) error {
		want := hub.DeepCopy()
		unstructured.RemoveNestedField(want.Object, "spec", "conversion")
		for _, part := range []string{"spec", "status"} {
			if diff := cmp.Diff(want.Object[part], got.Object[part]); diff != "" {
				return fmt.Errorf("%s (-want +got):\n%s", part, diff)
			}
		}
		return nil
	}
}

// GetCRD returns a definition.
func (f *Fixture) GetCRD(c client.Client, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	return crd, c.Get(f.Ctx, types.NamespacedName{Name: name}, crd)
}

// NewObject returns an object without a spec.
func NewObject(gvk schema.GroupVersionKind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(gvk)
	u.SetName(name)
	return u
}

// CreateXRD creates a definition in the hub, as a platform team does, with the status that Crossplane gives it.
func (f *Fixture) CreateXRD(plural string) *unstructured.Unstructured {
	f.T.Helper()
	u := NewObject(XRDKind, plural+"."+f.Group)
	u.SetLabels(map[string]string{"tier": "gold", "pkg.crossplane.io/package": "internal"})
	u.SetAnnotations(map[string]string{"hub.example.org/note": "stays in the hub"})
	u.Object["spec"] = map[string]any{
		"group": f.Group, "scope": "LegacyCluster",
		"names":                map[string]any{"kind": "Composite" + plural, "plural": plural},
		"claimNames":           map[string]any{"kind": "Claim" + plural, "plural": "claim" + plural},
		"connectionSecretKeys": []any{"username", "password", "endpoint"},
		"conversion": map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"conversionReviewVersions": []any{"v1"},
			"clientConfig": map[string]any{
				"caBundle": "aHVi", "service": map[string]any{"name": "convert", "namespace": "hub-internal"},
			},
		}},
		"versions": []any{map[string]any{
			"name": "v1alpha1", "served": true, "referenceable": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object"}},
			}},
		}},
	}
	f.Create(f.Hub, u)
	f.T.Cleanup(func() { f.Delete(f.Hub, u) })
	u.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "Offered", "status": "True", "reason": "WatchingCompositeResourceClaim", "lastTransitionTime": "2026-01-02T03:04:05Z",
	}}}
	if err := f.Hub.Status().Update(f.Ctx, u); err != nil {
		f.T.Fatal(err)
	}
	return u
}

// CreateComposition creates a Composition in the hub for a kind of the fixture's API group.
func (f *Fixture) CreateComposition(name, plural string) *unstructured.Unstructured {
	f.T.Helper()
	u := NewObject(CompositionKind, name+"."+f.Group)
	u.SetLabels(map[string]string{"provider": "aws"})
	u.Object["spec"] = map[string]any{
		"compositeTypeRef": map[string]any{"apiVersion": f.Group + "/v1alpha1", "kind": "Composite" + plural},
		"mode":             "Pipeline",
		"pipeline": []any{map[string]any{
			"step": "compose", "functionRef": map[string]any{"name": "function-auto-ready"},
		}},
	}
	f.Create(f.Hub, u)
	f.T.Cleanup(func() { f.Delete(f.Hub, u) })
	return u
}

// WaitForCopy waits until the workload cluster has a copy of an object of the hub that check accepts.
func (f *Fixture) WaitForCopy(hub *unstructured.Unstructured, check func(*unstructured.Unstructured) error) *unstructured.Unstructured {
	f.T.Helper()
	u := NewObject(hub.GroupVersionKind(), hub.GetName())
	f.Within("the copy of "+hub.GetName(), func() error {
		if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}
		if check != nil {
			return check(u)
		}
		return nil
	})
	return u
}

// WaitForGone waits until the workload cluster has no object of that name.
func (f *Fixture) WaitForGone(hub *unstructured.Unstructured) {
	f.T.Helper()
	f.Case.WaitForGone(f.Workload, NewObject(hub.GroupVersionKind(), hub.GetName()))
}

// NewClaimCRD is the definition of a claim kind as the agent puts it into a workload cluster, or a foreign one.
func (f *Fixture) NewClaimCRD(plural string, labels map[string]string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + f.Group, Labels: labels},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: f.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: strings.ToUpper(plural)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}
}
