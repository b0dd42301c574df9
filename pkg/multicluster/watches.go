// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/budget"
	"github.com/masthead-dev/masthead/pkg/dynamicclient"
	"github.com/masthead-dev/masthead/pkg/guard"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// WatchTimeout is the time-out of the HTTP client of watches. An API server ends a watch after five to ten minutes, so
// that this never cuts one that lives, and still ends a list that hangs.
const WatchTimeout = 11 * time.Minute

// Definitions are all CustomResourceDefinitions of a cluster, without content.
func Definitions() kindwatch.Kind {
	return kindwatch.Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		Resource:         "customresourcedefinitions",
		ClusterScoped:    true,
		MetadataOnly:     true,
	}
}

// DefinitionNamed is one of them.
func DefinitionNamed(name string) kindwatch.Kind {
	kind := Definitions()
	kind.FieldSelector = "metadata.name=" + name
	return kind
}

// OwnedDefinitions are those of a workload cluster that bear Masthead's label. Every controller has some, and each
// cluster is asked for them once.
func OwnedDefinitions() kindwatch.Kind {
	kind := Definitions()
	kind.LabelSelector, kind.Shared = fleetv1alpha1.ManagedByLabel+"="+fleetv1alpha1.FieldManager, true
	return kind
}

// WatchOptions are those of a kindwatch.Watcher of a cluster, but for its handler: clients that go through the
// connection of the cluster, without the time-out that is meant for single requests (whoever makes such a request with
// them sets a deadline), and what watches the kinds that are shared, the account that is charged with what is kept, who
// is told of what is not synced, and the guard, if the connection has them.
func WatchOptions(cl cluster.Cluster) (kindwatch.Options, error) {
	o := kindwatch.Options{Guard: GuardOf(cl)}
	config := rest.CopyConfig(cl.GetConfig())
	config.Timeout = WatchTimeout
	httpClient := &http.Client{}
	if h := cl.GetHTTPClient(); h != nil {
		*httpClient = *h
	}
	httpClient.Timeout, httpClient.Transport = 0, WithTimeout(httpClient.Transport, WatchTimeout)

	var err error
	if o.MetadataClient, err = dynamicclient.NewMetadata(config, httpClient, o.Guard); err != nil {
		return o, fmt.Errorf("cannot make a metadata client: %w", err)
	}
	if c, ok := cl.(interface{ Shared() *kindwatch.Shared }); ok {
		o.Shared = c.Shared()
	}
	if c, ok := cl.(interface{ Account() *budget.Account }); ok {
		o.Account = c.Account()
	}
	if c, ok := cl.(interface{ Progress() *kindwatch.Progress }); ok {
		o.Progress = c.Progress()
	}
	if c, ok := cl.(interface{ Dynamic() dynamic.Interface }); ok {
		o.Client = c.Dynamic()
		return o, nil
	}
	if o.Client, err = dynamicclient.New(config, httpClient, o.Guard); err != nil {
		return o, fmt.Errorf("cannot make a dynamic client: %w", err)
	}
	return o, nil
}

// GuardOf returns the guard of the connection to a cluster, under which everything runs that handles data of the
// cluster. It is nil for the hub, which has none, and a nil guard recovers, too.
func GuardOf(cl cluster.Cluster) *guard.Guard {
	if c, ok := cl.(interface{ Guard() *guard.Guard }); ok {
		return c.Guard()
	}
	return nil
}
