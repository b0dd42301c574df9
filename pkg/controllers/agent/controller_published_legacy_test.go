// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// serveLegacyAPI makes the hub serve the API of Crossplane 0.10 to 0.12 for the duration of the test.
func (f *fixture) serveLegacyAPI() {
	f.T.Helper()
	open := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}}
	for _, kind := range []kindwatch.Kind{crossplane.InfrastructureDefinitionKind, crossplane.InfrastructurePublicationKind} {
		crd := &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: kind.GroupResource().String()},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: kind.Group, Scope: apiextensionsv1.ClusterScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: kind.Resource, Kind: kind.Kind},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: kind.Version, Served: true, Storage: true, Schema: open,
					Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				}},
			},
		}
		f.Create(f.Hub, crd)
		f.T.Cleanup(func() {
			if err := f.Hub.Delete(context.Background(), crd); err != nil {
				f.T.Error(err)
			}
		})
	}
}

func TestSynchronizationPullPublishesWhatAnInfrastructurePublicationDoes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.WaitForServed()
	f.serveLegacyAPI()
	definition := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"connectionSecretKeys": []any{"password"},
		"crdSpecTemplate": map[string]any{
			"group": f.Group, "version": "v1alpha1", "names": map[string]any{"kind": "Bucket", "singular": "bucket", "plural": "buckets"},
		},
	}}}
	definition.SetGroupVersionKind(crossplane.InfrastructureDefinitionKind.GroupVersionKind)
	definition.SetName("buckets." + f.Group)
	publication := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"infrastructureDefinitionRef": map[string]any{"name": definition.GetName()},
	}}}
	publication.SetGroupVersionKind(crossplane.InfrastructurePublicationKind.GroupVersionKind)
	publication.SetName(definition.GetName())

	crd := f.ClaimCRD()
	crd.Name = "bucketrequirements." + f.Group
	crd.OwnerReferences[0].Kind = crossplane.InfrastructurePublicationKind.Kind
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "bucketrequirements", Singular: "bucketrequirement", Kind: "BucketRequirement"}
	f.Create(f.Hub, crd)
	for _, obj := range []*unstructured.Unstructured{definition, publication} {
		f.Within("the old API is served", func() error { return f.Hub.Create(f.Ctx, obj) })
	}
	publication.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
	if err := f.Hub.Status().Update(f.Ctx, publication); err != nil {
		t.Fatal(err)
	}

	requirement := func(namespace string) *unstructured.Unstructured {
		u := f.NewClaim(namespace, "assets")
		u.SetKind("BucketRequirement")
		return u
	}
	local := requirement(f.Namespace)
	local.Object["spec"] = map[string]any{"version": "1", "resourceRef": map[string]any{"name": "of-another-tenant"}}
	f.Within("the requirement is created", func() error { return f.Workload.Create(f.Ctx, local) })
	hub := requirement(f.Target)
	f.Within("the requirement is pushed", func() error { return f.Hub.Get(f.Ctx, client.ObjectKeyFromObject(hub), hub) })
	if _, found, _ := unstructured.NestedFieldNoCopy(hub.Object, "spec", "resourceRef"); found {
		t.Errorf("want a requirement never to name a composite of the hub, got %v", hub.Object["spec"])
	}

	if err := f.Hub.Delete(f.Ctx, publication); err != nil {
		t.Fatal(err)
	}
	f.Within("a requirement whose publication is withdrawn says so", func() error {
		u := requirement(f.Namespace)
		if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}
		if propagation.AgentSynced(u)["reason"] != fleetv1alpha1.ReasonKindNotOffered {
			return errors.New("not yet")
		}
		return nil
	})
	if err := f.Workload.Delete(f.Ctx, local); err != nil {
		t.Fatal(err)
	}
	f.Within("it goes from the hub all the same", func() error {
		if err := f.Hub.Get(f.Ctx, client.ObjectKeyFromObject(hub), requirement(f.Target)); !apierrors.IsNotFound(err) {
			return errors.New("not yet")
		}
		return nil
	})
	// The claims of XRDs are published alongside it.
	f.CreateClaim("db")
	f.WaitForPushed("db")
}
