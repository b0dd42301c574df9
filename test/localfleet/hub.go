// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// startHub brings the hub up: control plane, CRDs, and the controllers that the options enable.
func (f *Fleet) startHub(ctx context.Context, hubManifests []string) error {
	c, err := f.newCluster(HubName)
	if err != nil {
		return err
	}
	return c.startControlPlane(ctx, func(ctx context.Context) error {
		config, err := c.adminConfig()
		if err != nil {
			return err
		}
		objects, err := f.sources.hubObjects()
		if err != nil {
			return err
		}
		if err := applyObjects(ctx, config, objects); err != nil {
			return err
		}
		f.logf("%s: %d objects are installed, most of them CRDs", c.name, len(objects))
		if len(hubManifests) > 0 {
			if err := Apply(ctx, config, hubManifests...); err != nil {
				return err
			}
		}
		return inParallel(ctx, c.startCrossplane, c.startClusterAPI)
	})
}

// InstallHub installs in any cluster what the hub of a fleet with all components starts with: CRDs, and the namespaces
// of Crossplane core and Cluster API core.
func InstallHub(ctx context.Context, config *rest.Config) error {
	repository, err := Repository()
	if err != nil {
		return err
	}
	sources, err := findSources(ctx, repository, &fleetState{WithCrossplane: true})
	if err != nil {
		return err
	}
	objects, err := sources.hubObjects()
	if err != nil {
		return err
	}
	return applyObjects(ctx, config, objects)
}

// hubObjects are the CRDs and namespaces that the hub starts with.
func (s sources) hubObjects() ([]*unstructured.Unstructured, error) {
	objects, err := embeddedManifests("hub")
	if err != nil {
		return nil, err
	}
	found, err := readManifests(slices.Concat(s.clusterAPICRDs, s.inventoryCRDs, s.crossplaneCRDs))
	if err != nil {
		return nil, err
	}
	for _, object := range found {
		labelContract(object)
	}
	for _, namespace := range []string{crossplaneNamespace, clusterAPINamespace} {
		objects = append(objects, newObject(corev1.SchemeGroupVersion.WithKind("Namespace"), "", namespace, nil))
	}
	return append(objects, found...), nil
}

// labelContract sets the labels on the CRDs of Cluster API that its own installer sets and that its core reads: they
// state which of their versions belongs to which version of its contract.
func labelContract(crd *unstructured.Unstructured) {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	if group != "cluster.x-k8s.io" && !strings.HasSuffix(group, ".cluster.x-k8s.io") {
		return
	}
	labels := crd.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels["cluster.x-k8s.io/provider"] = "cluster-api"
	labels["cluster.x-k8s.io/v1beta1"] = "v1beta1"
	labels["cluster.x-k8s.io/v1beta2"] = "v1beta2"
	crd.SetLabels(labels)
}

// startCrossplane starts the composition function and Crossplane core if the options enable them.
func (c *cluster) startCrossplane(ctx context.Context) error {
	if !c.fleet.state.WithCrossplane {
		return nil
	}
	if err := writeFunctionCertificates(c.fleet.layout.pki(c.name), c.fleet.clock); err != nil {
		return err
	}
	config, err := c.adminConfig()
	if err != nil {
		return err
	}
	crossplane, err := c.crossplane()
	if err != nil {
		return err
	}
	return inParallel(ctx,
		func(ctx context.Context) error { return c.startServer(ctx, crossplane) },
		func(ctx context.Context) error {
			if err := c.startServer(ctx, c.function()); err != nil {
				return err
			}
			return c.installFunction(ctx, config)
		},
	)
}

// startClusterAPI starts Cluster API core if the options enable it.
func (c *cluster) startClusterAPI(ctx context.Context) error {
	if !c.fleet.state.WithClusterAPI {
		return nil
	}
	clusterAPI, err := c.clusterAPI()
	if err != nil {
		return err
	}
	return c.startServer(ctx, clusterAPI)
}
