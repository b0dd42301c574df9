// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/fakecloud"
	"github.com/masthead-dev/masthead/internal/test/providercrds"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/takeover"
)

const (
	// Reader is the ClusterRole of most credentials of imported clusters. It lists Nodes, reads kube-system and writes
	// nothing.
	Reader = "import-reader"

	// Admin is that of an administrator.
	Admin = "cluster-admin"

	// Region is where the clusters are that AddEKS adds.
	Region = "eu-central-1"

	// TokenLifetime is how many seconds an issued token works. The importer requests the next one when a third of that
	// time is left.
	TokenLifetime = 15
)

// Hub is a hub, which is also the API server of the imported clusters, with the providers of a cloud.
type Hub struct {
	Config *rest.Config
	Client client.Client
	Cloud  *fakecloud.Cloud
	Tokens *fakecloud.TokenEndpoint

	// StopCloud stops the providers, and returns their error.
	StopCloud func() error

	// Recorder, if there is one, is called with each object before Create creates it.
	Recorder func(client.Object)

	env      interface{ Stop() error }
	webhooks Webhooks
}

// ModernKinds are all but the cluster-scoped managed resources.
func ModernKinds() []schema.GroupKind {
	return slices.Concat(providercrds.ClusterAPI(), providercrds.Machines(), providercrds.Imports())
}

// LegacyKinds are all but the namespaced managed resources.
func LegacyKinds() []schema.GroupKind {
	return slices.DeleteFunc(providercrds.All(), func(gk schema.GroupKind) bool { return strings.HasSuffix(gk.Group, ".m.upbound.io") })
}

// Start starts a hub that serves some kinds, and the providers of the cloud. If the variable MASTHEAD_WEBHOOKS names
// the folder of the programs that make webhooks builds, the hub has the webhooks of Cluster API's providers, and
// otherwise policies that stand for them.
func Start(ctx context.Context, kinds []schema.GroupKind) (hub *Hub, err error) {
	crds, err := providercrds.Load(ctx, kinds...)
	if err != nil {
		return nil, err
	}
	env, err := testenv.New(testenv.CRDs())
	if err != nil {
		return nil, err
	}
	env.CRDInstallOptions.CRDs = crds
	h := &Hub{Cloud: fakecloud.New(), Tokens: fakecloud.NewTokenEndpoint(TokenLifetime), env: env}
	defer func() {
		if err != nil {
			_ = errors.Join(h.webhooks.Stop(), env.Stop())
		}
	}()
	if h.Config, err = testenv.Start(env); err != nil {
		return nil, fmt.Errorf("cannot start the hub: %w", err)
	}
	h.Config.QPS = -1
	if h.Client, err = client.New(h.Config, client.Options{Scheme: controllertest.Scheme()}); err != nil {
		return nil, fmt.Errorf("cannot create a client: %w", err)
	}
	if err := h.prepare(ctx, kinds); err != nil {
		return nil, err
	}
	if err := h.refuse(ctx, env.KubeConfig); err != nil {
		return nil, err
	}
	h.StopCloud = RunInBackground(ctx, func(ctx context.Context) error { return h.Cloud.Run(ctx, h.Config) })
	return h, nil
}

// Stop stops the providers and the hub, and returns what went wrong in them.
func (h *Hub) Stop() error {
	err := h.StopCloud()
	h.Tokens.Close()
	return errors.Join(err, h.webhooks.Stop(), h.env.Stop())
}

// RunInBackground runs something until stop is called, which returns what went wrong. A short test can be over before
// it has started: that it was cancelled is no error.
func RunInBackground(ctx context.Context, run func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	return sync.OnceValue(func() error {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	})
}

// prepare installs the admission policies and the provider configurations.
func (h *Hub) prepare(ctx context.Context, kinds []schema.GroupKind) error {
	policies, err := takeover.Policies()
	if err != nil {
		return fmt.Errorf("cannot read the policies: %w", err)
	}
	for _, p := range policies {
		if err := errors.Join(h.Client.Create(ctx, p.Policy), h.Client.Create(ctx, p.Binding)); err != nil {
			return fmt.Errorf("cannot install a policy: %w", err)
		}
	}
	for _, gk := range kinds {
		if config := providerConfig(gk); config != nil {
			if err := h.Client.Create(ctx, config); err != nil {
				return fmt.Errorf("cannot create a provider configuration: %w", err)
			}
		}
	}
	reader := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: Reader}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{metav1.NamespaceSystem}, Verbs: []string{"get"}},
	}}
	if err := h.Client.Create(ctx, reader); err != nil {
		return fmt.Errorf("cannot create a ClusterRole: %w", err)
	}
	// A policy is enforced a moment after it was created.
	return testenv.Poll(ctx, testenv.Patience, func(ctx context.Context) (bool, error) {
		return takeover.Verify(ctx, h.Client, metav1.NamespaceDefault) == nil, nil
	})
}

// providerConfig is the configuration of a kind: "customer" is for the namespace default, "platform" is not.
func providerConfig(gk schema.GroupKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"credentials": map[string]any{"source": "None"}}}}
	u.SetGroupVersionKind(gk.WithVersion("v1beta1"))
	u.SetName("customer")
	switch {
	case gk.Kind == "ClusterProviderConfig":
		u.SetName("platform")
	case gk.Kind != "ProviderConfig":
		return nil
	case strings.HasSuffix(gk.Group, ".m.upbound.io"):
		u.SetNamespace(metav1.NamespaceDefault)
	default:
		u.SetAnnotations(map[string]string{fleetv1alpha1.ImportAllowedNamespacesAnnotation: metav1.NamespaceDefault})
	}
	switch gk.Group {
	case "azure.upbound.io", "azure.m.upbound.io":
		_ = unstructured.SetNestedField(u.Object, fakecloud.DefaultSubscriptionID, "spec", "subscriptionID")
	case "gcp.upbound.io", "gcp.m.upbound.io":
		_ = unstructured.SetNestedField(u.Object, fakecloud.DefaultProjectID, "spec", "projectID")
	}
	return u
}
