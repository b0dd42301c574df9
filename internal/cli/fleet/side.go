// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/objects"
)

// HubName is the hub's name among those of clusters.
const HubName = "hub"

// A ClusterClient is the hub, or a workload cluster.
type ClusterClient struct {
	// Name is HubName, or the name of the cluster.
	Name string

	client    client.Client
	mapper    meta.RESTMapper
	discovery discovery.ServerVersionInterface
}

// Scheme has the command line's types.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, inventoryv1alpha1.AddToScheme,
		fleetv1alpha1.AddToScheme, appsv1alpha1.AddToScheme,
	} {
		utilruntime.Must(add(s))
	}
	return s
}

// NewSide returns the side of a configuration. It sends no requests yet.
func NewSide(name string, cfg *rest.Config) (*ClusterClient, error) {
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot use the credentials for %s: %w", name, err)
	}
	httpClient.CheckRedirect = refuseRedirects
	found, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client for %s: %w", name, err)
	}
	cached := memory.NewMemCacheClient(found)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
	c, err := client.New(cfg, client.Options{Scheme: Scheme(), Mapper: mapper, HTTPClient: httpClient})
	if err != nil {
		return nil, fmt.Errorf("cannot create a client for %s: %w", name, err)
	}
	return &ClusterClient{Name: name, client: c, mapper: mapper, discovery: found}, nil
}

// Client writes, for the commands that do.
func (s *ClusterClient) Client() client.Client { return s.client }

// Version returns that of the API server.
func (s *ClusterClient) Version() (string, error) {
	v, err := s.discovery.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("cannot query %s for its version: %w", s.Name, err)
	}
	return v.GitVersion, nil
}

// ErrNoSuchKind is returned for a kind that a side does not serve.
var ErrNoSuchKind = errors.New("the kind is not served")

// KindFor finds a kind by the name that the user gives, as kubectl does: Deployment, deployments, deploy, or
// deployments.apps.
func (s *ClusterClient) KindFor(word string) (schema.GroupVersionKind, error) {
	full, resource := schema.ParseResourceArg(strings.ToLower(word))
	if full != nil {
		if kind, err := s.mapper.KindFor(*full); err == nil {
			return kind, nil
		}
	}
	kind, err := s.mapper.KindFor(resource.WithVersion(""))
	if meta.IsNoMatchError(err) {
		return kind, fmt.Errorf("%s: %q: %w", s.Name, word, ErrNoSuchKind)
	}
	if err != nil {
		return kind, fmt.Errorf("cannot query %s for the kinds that it serves: %w", s.Name, err)
	}
	return kind, nil
}

// KindOfResource finds the kind of a resource. Without a version, it is the side's preferred one.
func (s *ClusterClient) KindOfResource(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	kind, err := s.mapper.KindFor(resource)
	if meta.IsNoMatchError(err) {
		return kind, fmt.Errorf("%s: %q: %w", s.Name, resource.GroupResource(), ErrNoSuchKind)
	}
	return kind, err
}

// Mapping finds how a kind is served. Without a version, it is the side's preferred one.
func (s *ClusterClient) Mapping(kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	versions := []string{}
	if kind.Version != "" {
		versions = append(versions, kind.Version)
	}
	m, err := s.mapper.RESTMapping(kind.GroupKind(), versions...)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("%s: %q: %w", s.Name, kind.GroupKind(), ErrNoSuchKind)
	}
	return m, err
}

// IsNamespaced reports whether a kind is namespaced.
func (s *ClusterClient) IsNamespaced(kind schema.GroupVersionKind) (bool, error) {
	m, err := s.Mapping(kind)
	if err != nil {
		return false, err
	}
	return m.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// bare reports whether only the metadata of a kind is read.
func bare(kind schema.GroupVersionKind) bool {
	return kind.GroupKind() == corev1.SchemeGroupVersion.WithKind("Secret").GroupKind()
}

// Get reads an object; of a Secret, its metadata.
func (s *ClusterClient) Get(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	if bare(kind) {
		m := &metav1.PartialObjectMetadata{}
		m.SetGroupVersionKind(kind)
		if err := s.client.Get(ctx, key, m); err != nil {
			return nil, err
		}
		return toUnstructured(m)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	if err := s.client.Get(ctx, key, u); err != nil {
		return nil, err
	}
	objects.Trim(u)
	return u, nil
}

// List reads the objects of a kind; of Secrets, their metadata.
func (s *ClusterClient) List(ctx context.Context, kind schema.GroupVersionKind, options ...client.ListOption) ([]*unstructured.Unstructured, error) {
	if bare(kind) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := s.client.List(ctx, list, options...); err != nil {
			return nil, err
		}
		out := make([]*unstructured.Unstructured, len(list.Items))
		for i := range list.Items {
			list.Items[i].SetGroupVersionKind(kind)
			u, err := toUnstructured(&list.Items[i])
			if err != nil {
				return nil, err
			}
			out[i] = u
		}
		return out, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := s.client.List(ctx, list, options...); err != nil {
		return nil, err
	}
	out := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
		objects.Trim(out[i])
	}
	return out, nil
}

func toUnstructured(m *metav1.PartialObjectMetadata) (*unstructured.Unstructured, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err != nil {
		return nil, fmt.Errorf("cannot read the metadata of %q: %w", m.Name, err)
	}
	u := &unstructured.Unstructured{Object: object}
	objects.Trim(u)
	return u, nil
}
