// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fakecloud

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Where resources are if the ProviderConfig does not specify it.
const (
	DefaultSubscriptionID = "00000000-0000-0000-0000-000000000000"
	DefaultProjectID      = "shop-project"
)

// Providers are the Crossplane providers of one hub, which reach one cloud.
type Providers struct {
	cloud *Cloud
	hub   client.Client
	seen  *rotations

	// PollInterval is how often a provider checks a resource without an event. Default: one second. The real providers
	// check every ten minutes.
	PollInterval time.Duration

	// WithoutManagementPolicies simulates providers that were started with --enable-management-policies=false.
	WithoutManagementPolicies bool
}

// Providers returns the providers of a hub, for tests that decide themselves when a managed resource is reconciled.
// Other tests call Run.
func (c *Cloud) Providers(config *rest.Config) (*Providers, error) {
	hub, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("cannot create a client for the hub: %w", err)
	}
	return &Providers{cloud: c, hub: hub, seen: &rotations{last: make(map[types.UID]int)}, PollInterval: time.Second}, nil
}

// Served returns the kinds of managed resources that the hub serves and the providers know, in the version that the hub
// prefers.
func (p *Providers) Served() ([]schema.GroupVersionKind, error) {
	var served []schema.GroupVersionKind
	for _, kind := range kinds() {
		for _, groupKind := range groupKinds(kind) {
			mapping, err := p.hub.RESTMapper().RESTMapping(groupKind)
			if meta.IsNoMatchError(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("cannot find out whether the hub serves %s: %w", groupKind, err)
			}
			served = append(served, mapping.GroupVersionKind)
		}
	}
	return served, nil
}

// Reconciler returns crossplane-runtime's reconciler for a kind that the hub serves.
func (p *Providers) Reconciler(ctx context.Context, kind schema.GroupVersionKind) (reconcile.Reconciler, error) {
	shape, err := p.shaper(ctx, kind)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if isModern(kind.Group) {
		scheme.AddKnownTypeWithName(kind, &modern{})
	} else {
		scheme.AddKnownTypeWithName(kind, &legacy{})
	}
	options := []managed.ReconcilerOption{
		managed.WithPollInterval(p.PollInterval),
		managed.WithCreationGracePeriod(time.Second),
		managed.WithExternalConnector(managed.ExternalConnectorFn(func(ctx context.Context, mg resource.Managed) (managed.ExternalClient, error) {
			return p.connect(ctx, mg, shape)
		})),
	}
	if legacyKind(kind.GroupKind()) != kindEKSClusterAuth && !p.WithoutManagementPolicies {
		options = append(options, managed.WithManagementPolicies())
	}
	r := managed.NewReconciler(stub{client: &kindClient{Client: p.hub, kind: kind}, scheme: scheme}, resource.ManagedKind(kind), options...)
	if legacyKind(kind.GroupKind()) != kindAKSCluster {
		return r, nil
	}
	// Without a location, the real provider leaves a cluster without any condition
	// (crossplane-contrib/provider-upjet-azure#1279).
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind)
		if err := p.hub.Get(ctx, req.NamespacedName, object); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		if location, _, _ := unstructured.NestedString(object.Object, "spec", "forProvider", "location"); location == "" {
			return reconcile.Result{}, nil
		}
		return r.Reconcile(ctx, req)
	}), nil
}

func (p *Providers) connect(ctx context.Context, mg resource.Managed, shape shaper) (managed.ExternalClient, error) {
	in, err := p.account(ctx, toUnstructured(mg))
	if err != nil {
		return nil, err
	}
	resource, err := identify(toUnstructured(mg), in)
	if err != nil {
		return nil, err
	}
	if legacyKind(toUnstructured(mg).GroupVersionKind().GroupKind()) == kindEKSClusterAuth {
		return &clusterAuth{cloud: p.cloud, hub: p.hub, id: resource, seen: p.seen}, nil
	}
	return &external{cloud: p.cloud, id: resource, shape: shape}, nil
}

// account reads the ProviderConfig. If the hub does not serve its kind, the test does not depend on it.
func (p *Providers) account(ctx context.Context, object *unstructured.Unstructured) (account, error) {
	in := account{subscriptionID: DefaultSubscriptionID, projectID: DefaultProjectID}
	reference, _, _ := unstructured.NestedStringMap(object.Object, "spec", "providerConfigRef")
	group := object.GroupVersionKind().Group
	kind := schema.GroupKind{Group: group[strings.Index(group, ".")+1:], Kind: "ProviderConfig"}
	key := client.ObjectKey{Name: reference["name"]}
	if isModern(group) {
		if kind.Kind = reference["kind"]; kind.Kind == "ProviderConfig" {
			key.Namespace = object.GetNamespace()
		}
	}
	mapping, err := p.hub.RESTMapper().RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return in, nil
	}
	if err != nil {
		return account{}, fmt.Errorf("cannot get %s: %w", kind, err)
	}
	config := &unstructured.Unstructured{}
	config.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := p.hub.Get(ctx, key, config); err != nil {
		return account{}, fmt.Errorf("cannot get referenced %s: %w", kind.Kind, err)
	}
	if id, _, _ := unstructured.NestedString(config.Object, "spec", "subscriptionID"); id != "" {
		in.subscriptionID = id
	}
	if id, _, _ := unstructured.NestedString(config.Object, "spec", "projectID"); id != "" {
		in.projectID = id
	}
	return in, nil
}

// stub is the part of a manager that crossplane-runtime's reconciler needs.
type stub struct {
	manager.Manager
	client client.Client
	scheme *runtime.Scheme
}

// GetClient is part of manager.Manager.
func (s stub) GetClient() client.Client { return s.client }

// GetScheme is part of manager.Manager.
func (s stub) GetScheme() *runtime.Scheme { return s.scheme }

// kindClient sets the kind of new managed resources. Generated types know theirs.
type kindClient struct {
	client.Client
	kind schema.GroupVersionKind
}

// Get is part of client.Client.
func (k *kindClient) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if mg, ok := into.(resource.Managed); ok {
		mg.GetObjectKind().SetGroupVersionKind(k.kind)
	}
	return k.Client.Get(ctx, key, into, options...)
}
