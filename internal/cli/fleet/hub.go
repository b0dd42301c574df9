// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"io"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/capi"
	"github.com/masthead-dev/masthead/pkg/providers/clusterprofile"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
	"github.com/masthead-dev/masthead/pkg/providers/kubeconfig"
)

// A Hub is the management cluster, with access to its workload clusters.
type Hub struct {
	*ClusterClient

	allow credentials.Options
	cfg   *rest.Config
	core  corev1client.CoreV1Interface

	mu        sync.Mutex
	workloads map[string]*reached
}

// reached is the result of connecting to a workload cluster.
type reached struct {
	once sync.Once
	side *ClusterClient
	err  error
}

// NewHub returns the hub of a configuration. allow is what the kubeconfigs of workload clusters may hold.
func NewHub(cfg *rest.Config, allow credentials.Options) (*Hub, error) {
	side, err := NewSide(HubName, cfg)
	if err != nil {
		return nil, err
	}
	core, err := corev1client.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client for the hub: %w", err)
	}
	return &Hub{ClusterClient: side, allow: allow, cfg: cfg, core: core, workloads: map[string]*reached{}}, nil
}

// Log opens the log of a container.
func (h *Hub) Log(ctx context.Context, pod client.ObjectKey, o corev1.PodLogOptions) (io.ReadCloser, error) {
	return h.core.Pods(pod.Namespace).GetLogs(pod.Name, &o).Stream(ctx)
}

// Clusters lists the fleet. Enrolled objects that the user may not list are left out: their ClusterProfiles say more.
func (h *Hub) Clusters(ctx context.Context) ([]Cluster, error) {
	all := &inventoryv1alpha1.ClusterProfileList{}
	err := h.client.List(ctx, all)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("there are no ClusterProfiles where the kubeconfig leads: is it the hub's? (%w)", ErrNoSuchKind)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the ClusterProfiles of the hub: %w", err)
	}
	var profiles []inventoryv1alpha1.ClusterProfile
	var enrolled []EnrolledObject
	for i := range all.Items {
		p := &all.Items[i]
		if p.Labels[inventoryv1alpha1.LabelClusterManagerKey] == fleetv1alpha1.FieldManager {
			profiles = append(profiles, *p)
		}
		if !clusterprofile.IsPublished(p) {
			enrolled = append(enrolled, EnrolledObject{Source: clusterprofile.SourceName, Object: p})
		}
	}
	for _, source := range []struct{ name, kind, group string }{
		{capi.SourceName, "Cluster", clusterv1.GroupVersion.String()},
		{kubeconfig.SourceName, "Secret", corev1.SchemeGroupVersion.String()},
	} {
		list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: source.group, Kind: source.kind + "List"}}
		if err := h.client.List(ctx, list, client.HasLabels{fleetv1alpha1.EnrollLabel}); err != nil {
			continue // What is enrolled and not published is all that is missed.
		}
		for i := range list.Items {
			enrolled = append(enrolled, EnrolledObject{Source: source.name, Object: &list.Items[i]})
		}
	}
	reports := &fleetv1alpha1.ApplicationReportList{}
	if err := h.client.List(ctx, reports); err != nil {
		reports.Items = nil // When clusters were last seen is all that is missed.
	}
	return Clusters(enrolled, profiles, reports.Items), nil
}
