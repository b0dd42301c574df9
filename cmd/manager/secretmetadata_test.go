// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/clusterprofile"
)

// TestOtherSecretsOfClustersAreNotCached has a Cluster with the Secrets that Cluster API makes for it.
func TestOtherSecretsOfClustersAreNotCached(t *testing.T) {
	secret := func(name, version string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, ResourceVersion: version}}
	}
	for name, streamed := range map[string]bool{"Listed": false, "Streamed": true} {
		t.Run(name, func(t *testing.T) {
			events := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 10})
			refused := false
			all := &cache.ListWatch{
				ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
					if !refused { // As after a restart of the hub. controller-runtime returns the nil pointer.
						refused = true
						return (*metav1.PartialObjectMetadataList)(nil), apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil)
					}
					list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "4"}}
					for i, name := range []string{"w1-kubeconfig", "w1-ca", "w1-etcd", "md-0-x7x9k"} {
						list.Items = append(list.Items, *secret(name, fmt.Sprint(i)))
					}
					return list, nil
				},
				WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
					if o.SendInitialEvents != nil && !streamed {
						return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "", nil) // It does not stream lists.
					}
					return events, nil
				},
			}
			var kept []string
			informer := ofKubeconfigs(all, &metav1.PartialObjectMetadata{}, 0, cache.Indexers{})
			synced, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
				kept = append(kept, o.(*metav1.PartialObjectMetadata).Name)
			}})
			if err != nil {
				t.Fatal(err)
			}
			if streamed {
				events.Add(secret("w1-ca", "1"))
				events.Add(secret("w1-kubeconfig", "2"))
				end := secret("", "4")
				end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
				events.Action(watch.Bookmark, end)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { defer close(ended); informer.RunWithContext(ctx) }()
			eventually(t, "it is synced", synced.HasSynced)
			events.Add(secret("md-0-8w2zq", "5"))
			events.Modify(secret("w1-etcd", "6"))
			events.Add(secret("w2-kubeconfig", "7"))
			eventually(t, "another kubeconfig arrives", func() bool { return informer.LastSyncResourceVersion() == "7" })
			eventually(t, "nothing else is kept", func() bool { return len(informer.GetStore().ListKeys()) == 2 })
			cancel()
			<-ended
			if diff := cmp.Diff([]string{"w1-kubeconfig", "w2-kubeconfig"}, kept); diff != "" {
				t.Errorf("want only the kubeconfigs reported (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOnlyWhatSourcesReadOfASecretIsKept(t *testing.T) {
	now := metav1.NewTime(time.Now())
	kind := metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
	kept := metav1.ObjectMeta{
		Namespace: "fleet", Name: "w1-kubeconfig", UID: "1", ResourceVersion: "5", CreationTimestamp: now, DeletionTimestamp: &now,
		Labels: map[string]string{
			fleetv1alpha1.EnrollLabel: "default", clusterv1.ClusterNameLabel: "w1",
			clusterprofile.ProfileLabel: "w1", clusterprofile.ProfileNamespaceLabel: "fleet",
		},
		Annotations: map[string]string{
			fleetv1alpha1.ClusterIdentifierAnnotation: "prod", fleetv1alpha1.TakeOverFromAnnotation: "hub-b",
		},
	}
	big := strings.Repeat("é", 128<<10)
	cases := map[string]struct {
		reason string
		change func(*metav1.ObjectMeta)
		want   func(*metav1.ObjectMeta)
	}{
		"Everything": {"What is read is kept.", func(*metav1.ObjectMeta) {}, func(*metav1.ObjectMeta) {}},
		"Others": {
			"Metadata that the manager does not read is not kept, even under a prefix of Masthead.",
			func(m *metav1.ObjectMeta) {
				m.Labels["theirs"], m.Annotations["theirs"], m.Annotations["masthead.dev/theirs"] = "x", big, big
				m.Finalizers, m.OwnerReferences = []string{big}, []metav1.OwnerReference{{Name: big}}
				m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: big}}
			},
			func(*metav1.ObjectMeta) {},
		},
		"TooLong": {
			"What is read is cut, between characters.",
			func(m *metav1.ObjectMeta) { m.Annotations[fleetv1alpha1.ClusterIdentifierAnnotation] = "x" + big },
			func(m *metav1.ObjectMeta) {
				m.Annotations[fleetv1alpha1.ClusterIdentifierAnnotation] = "x" + strings.Repeat("é", (maxSourceText-1)/2)
			},
		},
		"None": {
			"There may be nothing.",
			func(m *metav1.ObjectMeta) { m.Labels, m.Annotations = nil, map[string]string{"theirs": big} },
			func(m *metav1.ObjectMeta) { m.Labels, m.Annotations = nil, nil },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in, want := kept.DeepCopy(), kept.DeepCopy()
			tc.change(in)
			tc.want(want)
			got, err := onlyWhatSourcesRead(&metav1.PartialObjectMetadata{TypeMeta: kind, ObjectMeta: *in})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&metav1.PartialObjectMetadata{TypeMeta: kind, ObjectMeta: *want}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	tombstone := cache.DeletedFinalStateUnknown{Key: "fleet/w1-kubeconfig"}
	if got, err := onlyWhatSourcesRead(tombstone); err != nil || got != tombstone {
		t.Errorf("want a tombstone as it is, got %v (%v)", got, err)
	}
}
