// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// redirectClusters writes the port of the API server into the Cluster objects and their infrastructure.
func (f *Fleet) redirectClusters(ctx context.Context, c *cluster) error {
	config, err := f.Config(HubName)
	if err != nil {
		return err
	}
	hub, err := newClient(config)
	if err != nil {
		return err
	}
	keys, err := f.registrations(ctx, c.name)
	if err != nil {
		return err
	}
	for _, key := range keys {
		for _, kind := range []schema.GroupVersionKind{localClusterKind, clusterKind} {
			object := newObject(kind, key.Namespace, key.Name, nil)
			patch := fmt.Appendf(nil, `{"spec":{"controlPlaneEndpoint":{"port":%d}}}`, c.ports()[portAPIServer])
			if err := patchObject(ctx, hub, object, patch); err != nil {
				return err
			}
		}
	}
	return nil
}

func patchObject(ctx context.Context, hub client.Client, object *unstructured.Unstructured, patch []byte) error {
	if err := hub.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), fieldManager); err != nil {
		return fmt.Errorf("cannot patch %s %s/%s in the hub: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return nil
}
