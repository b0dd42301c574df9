// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/dynamicclient"
	"github.com/masthead-dev/masthead/pkg/guard"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/limits"
)

// WatchTimeout is the timeout of the HTTP client of watches. An API server ends a watch after five to ten minutes, so
// this never ends a healthy watch, but ends a list that hangs.
const WatchTimeout = 11 * time.Minute

// Definitions returns the Kind for all CustomResourceDefinitions of a cluster, metadata only.
func Definitions() kindwatch.Kind {
	return kindwatch.Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		Resource:         "customresourcedefinitions",
		ClusterScoped:    true,
		MetadataOnly:     true,
	}
}

// DefinitionNamed returns the Kind for one of them.
func DefinitionNamed(name string) kindwatch.Kind {
	kind := Definitions()
	kind.FieldSelector = "metadata.name=" + name
	return kind
}

// OwnedDefinitions returns the Kind for those of a workload cluster with Masthead's label. Every controller has some,
// and they share one watch per cluster.
func OwnedDefinitions() kindwatch.Kind {
	kind := Definitions()
	kind.LabelSelector, kind.Shared = fleetv1alpha1.ManagedByLabel+"="+fleetv1alpha1.FieldManager, true
	return kind
}

// WatchOptions returns the options of a kindwatch.Watcher for a cluster, except the handler: clients that use the
// cluster's connection without its timeout for single requests (set a deadline for such requests), and the Shared,
// Account, Lists, Progress and Guard of the connection, if it has them.
func WatchOptions(cl cluster.Cluster) (kindwatch.Options, error) {
	o := kindwatch.Options{Guard: GetGuard(cl)}
	if c, ok := cl.(interface{ Shared() *kindwatch.Shared }); ok {
		o.Shared = c.Shared()
	}
	if c, ok := cl.(interface{ Account() *limits.Account }); ok {
		o.Account = c.Account()
	}
	if c, ok := cl.(interface{ Lists() *limits.Semaphore[any] }); ok {
		o.Lists = c.Lists()
	}
	if c, ok := cl.(interface{ Progress() *kindwatch.Progress }); ok {
		o.Progress = c.Progress()
	}
	if c, ok := cl.(interface {
		Dynamic() dynamicclient.Objects
		Metadata() dynamicclient.Metadata
	}); ok {
		o.Client, o.MetadataClient = c.Dynamic(), c.Metadata()
		return o, nil
	}
	config := rest.CopyConfig(cl.GetConfig())
	config.Timeout = WatchTimeout
	httpClient := &http.Client{}
	if h := cl.GetHTTPClient(); h != nil {
		*httpClient = *h
	}
	httpClient.Timeout, httpClient.Transport = 0, WithTimeout(httpClient.Transport, WatchTimeout)

	var err error
	if o.MetadataClient, err = dynamicclient.NewMetadata(config, httpClient); err != nil {
		return o, fmt.Errorf("cannot create a metadata client: %w", err)
	}
	if o.Client, err = dynamicclient.New(config, httpClient); err != nil {
		return o, fmt.Errorf("cannot create a dynamic client: %w", err)
	}
	return o, nil
}

// GetGuard returns the guard of the connection to a cluster, which guards all code that handles data of the cluster. It
// is nil for the hub; a nil guard recovers, too.
func GetGuard(cl cluster.Cluster) *guard.Guard {
	if c, ok := cl.(interface{ Guard() *guard.Guard }); ok {
		return c.Guard()
	}
	return nil
}
