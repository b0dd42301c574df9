// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/capi"
	"github.com/masthead-dev/masthead/pkg/providers/clusterprofile"
)

// newInformerFunc is the type of cache.Options.NewInformer.
type newInformerFunc = func(
	toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers,
) toolscache.SharedIndexInformer

// ofKubeconfigs makes an informer that keeps nothing of Secrets other than kubeconfigs of Clusters. Cluster API labels
// many others, such as the bootstrap data of each Machine, and no selector of the API knows the end of a name.
func ofKubeconfigs(
	all toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	some := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := toolscache.ToListerWithContext(all).ListWithContext(ctx, o)
			// Beside an error, the list is a nil pointer.
			if l, ok := list.(*metav1.PartialObjectMetadataList); ok && err == nil {
				l.Items = slices.DeleteFunc(l.Items, func(m metav1.PartialObjectMetadata) bool { return !capi.IsKubeconfig(m.Name) })
			}
			return list, err //nolint:wrapcheck // The reflector knows the API's errors.
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := toolscache.ToWatcherWithContext(all).WatchWithContext(ctx, o)
			if err != nil {
				return nil, err //nolint:wrapcheck // As above.
			}
			return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
				m, ok := e.Object.(*metav1.PartialObjectMetadata)
				return e, !ok || e.Type == watch.Bookmark || capi.IsKubeconfig(m.Name)
			}), nil
		},
	}
	return toolscache.NewSharedIndexInformer(some, obj, resync, indexers)
}

// maxSourceText bounds a text in the metadata of a Secret. A cluster's identifier is published as a property of its
// ClusterProfile, which has the same limit.
const maxSourceText = 1024

// onlyWhatSourcesRead strips the metadata of a Secret to what the cluster sources read: its identity and state,
// four labels, and two annotations. Tenants of the hub write the rest: an API server allows each Secret 256 KiB of
// annotations, and any number of labels.
func onlyWhatSourcesRead(in any) (any, error) {
	m, ok := in.(*metav1.PartialObjectMetadata)
	if !ok {
		return in, nil // A tombstone, for example.
	}
	return &metav1.PartialObjectMetadata{TypeMeta: m.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
		Labels: only(m.Labels, fleetv1alpha1.EnrollLabel, clusterv1.ClusterNameLabel,
			clusterprofile.ProfileLabel, clusterprofile.ProfileNamespaceLabel),
		Annotations: only(m.Annotations, fleetv1alpha1.ClusterIdentifierAnnotation, fleetv1alpha1.TakeOverFromAnnotation),
	}}, nil
}

// only returns some of the texts, each cut if it is too long.
func only(texts map[string]string, names ...string) map[string]string {
	var out map[string]string
	for _, name := range names {
		text, ok := texts[name]
		if !ok {
			continue
		}
		if len(text) > maxSourceText {
			text = strings.ToValidUTF8(text[:maxSourceText], "")
		}
		if out == nil {
			out = map[string]string{}
		}
		// A substring would keep the whole text in memory.
		out[name] = strings.Clone(text)
	}
	return out
}
