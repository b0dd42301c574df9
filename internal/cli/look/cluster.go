// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package look

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/cli/fleet"
	"github.com/masthead-dev/masthead/internal/cli/why"
	"github.com/masthead-dev/masthead/pkg/providers/capi"
	"github.com/masthead-dev/masthead/pkg/providers/clusterprofile"
)

func isNoMatch(err error) bool { return meta.IsNoMatchError(err) }

func profileKind() schema.GroupVersionKind {
	return inventoryv1alpha1.GroupVersion.WithKind("ClusterProfile")
}

func classKind() schema.GroupVersionKind {
	return fleetv1alpha1.GroupVersion.WithKind("EnrollmentClass")
}

func secretKind() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind("Secret") }

func clusterKind() schema.GroupVersionKind { return clusterv1.GroupVersion.WithKind("Cluster") }

// cluster returns what an enrolled cluster needs: its class, its enrolled object, and the kubeconfig. A question about
// something in a connected cluster needs the class alone.
func (l *Collector) cluster(ctx context.Context, c *fleet.Cluster, f why.For) *why.Thing {
	key := c.Key()
	at := key.Published()
	t := l.thing(ctx, l.hub.ClusterClient, why.RoleCluster, profileKind(), at.Namespace, at.Name)
	t.For = f
	if t.Absent == why.NotFound {
		t.Reported = append(t.Reported, why.Finding{
			Severity: why.Blocked, Derived: true, Reason: fleet.ReasonNotPublished,
			Message: "The enrolled object has no ClusterProfile. Does the manager run, and with this source (--sources)?",
		})
		t.Absent = why.Present
	}
	if c.Class != "" && (f == why.For{} || f.Use != "" || c.Reason == fleetv1alpha1.ReasonClassNotFound) {
		class := l.thing(ctx, l.hub.ClusterClient, why.RoleClass, classKind(), "", c.Class)
		class.For = f
		t.Needs = append(t.Needs, class)
	}
	if c.State == fleet.StateConnected {
		return t
	}
	switch key.Source {
	case capi.SourceName:
		t.Needs = append(t.Needs,
			l.thing(ctx, l.hub.ClusterClient, why.RoleEnrolled, clusterKind(), key.Namespace, key.Name),
			l.thing(ctx, l.hub.ClusterClient, why.RoleKubeconfig, secretKind(), key.Namespace, key.Name+"-kubeconfig"))
	case clusterprofile.SourceName: // What its access provider lacks is in the message of Connected.
		t.Needs = append(t.Needs, l.thing(ctx, l.hub.ClusterClient, why.RoleEnrolled, profileKind(), key.Namespace, key.Name))
	default:
		t.Needs = append(t.Needs, l.thing(ctx, l.hub.ClusterClient, why.RoleEnrolled, secretKind(), key.Namespace, key.Name))
	}
	return t
}

// Cluster reads a cluster by a name that the user gives: an enrolled one, or a Cluster of Cluster API that is not.
func (l *Collector) Cluster(ctx context.Context, word, namespace string) (*why.Thing, error) {
	c, err := fleet.Find(l.clusters, word)
	if err == nil {
		return l.cluster(ctx, c, why.For{}), nil
	}
	t := l.thing(ctx, l.hub.ClusterClient, why.RoleEnrolled, clusterKind(), namespace, word)
	if t.Object == nil {
		return nil, err
	}
	return t, nil
}

// class reads an EnrollmentClass, and those of its clusters that are not connected.
func (l *Collector) class(ctx context.Context, t *why.Thing) *why.Thing {
	for i := range l.clusters {
		if c := &l.clusters[i]; c.Class == t.Ref.Name && c.State != fleet.StateConnected {
			need := l.cluster(ctx, c, why.For{})
			need.Needs = need.Needs[min(1, len(need.Needs)):] // The class itself.
			t.Needs = append(t.Needs, need)
		}
	}
	return t
}
