// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"fmt"

	"github.com/masthead-dev/masthead/pkg/condition"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kinds of the sample APIs, see manifests/samples.
var (
	// MySQLClaimKind is offered by an XRD v1 as a claim. Its composites return connection details.
	MySQLClaimKind = schema.GroupVersionKind{Group: "database.acmeco.org", Version: "v1alpha1", Kind: "MySQLInstanceRequirement"}
	// CacheKind is a namespaced composite of an XRD v2. It has no connection details; composed Secrets take their place.
	CacheKind = schema.GroupVersionKind{Group: "cache.acmeco.org", Version: "v1alpha1", Kind: "Cache"}
)

// InstallSamples installs the sample APIs in the hub and returns when objects of their kinds can be created. It needs a
// fleet with Crossplane.
func (f *Fleet) InstallSamples(ctx context.Context) error {
	config, err := f.Config(HubName)
	if err != nil {
		return err
	}
	return InstallSamples(ctx, config)
}

// InstallSamples installs the sample APIs in any hub with Crossplane and the composition function.
func InstallSamples(ctx context.Context, config *rest.Config) error {
	objects, err := embeddedManifests("samples")
	if err != nil {
		return err
	}
	if err = applyObjects(ctx, config, objects); err != nil {
		return err
	}
	hub, err := newClient(config)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if object.GetKind() != "CompositeResourceDefinition" {
			continue
		}
		conditions := []string{"Established"}
		if _, claims, _ := unstructured.NestedMap(object.Object, "spec", "claimNames"); claims {
			conditions = append(conditions, "Offered")
		}
		for _, conditionType := range conditions {
			if err := waitCondition(ctx, hub, object, conditionType); err != nil {
				return err
			}
		}
	}
	return nil
}

func waitCondition(ctx context.Context, hub client.Client, object *unstructured.Unstructured, conditionType string) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	err := wait.PollUntilContextTimeout(ctx, readyInterval, applyTimeout, true, func(ctx context.Context) (bool, error) {
		if err := hub.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
			return false, nil //nolint:nilerr // Tried again until the time is over.
		}
		return condition.IsTrue(live, conditionType), nil
	})
	if err != nil {
		return fmt.Errorf("%s %q did not become %s (status %v): %w", object.GetKind(), object.GetName(), conditionType, live.Object["status"], err)
	}
	return nil
}
