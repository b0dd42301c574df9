// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package look

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/cli/fleet"
	"github.com/masthead-dev/masthead/internal/cli/why"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/crossplane"
)

// A Question is the object that the user asks about.
type Question struct {
	// Kind is the kind as typed for kubectl.
	Kind, Namespace, Name string

	// Cluster is the name of the workload cluster that has the object. Without one it is searched for.
	Cluster string
}

// Find finds the object of a question, and everything related to it.
func (l *Collector) Find(ctx context.Context, q Question) (*why.Thing, error) {
	switch strings.ToLower(q.Kind) {
	case "cluster", "clusters", "clusters.cluster.x-k8s.io", "clusterprofile", "clusterprofiles":
		return l.Cluster(ctx, q.Name, q.Namespace)
	case "import", "imports":
		q.Kind = "clusterimports.fleet.masthead.dev"
	case "class", "classes":
		q.Kind = "enrollmentclasses.fleet.masthead.dev"
	case "app", "apps", "application":
		q.Kind = "applications." + ApplicationKind().Group
	}
	if q.Cluster != "" {
		c, err := fleet.Find(l.clusters, q.Cluster)
		if err != nil {
			return nil, err
		}
		return l.inCluster(ctx, c, q)
	}
	return l.anywhere(ctx, q)
}

// inCluster reads an object of a workload cluster. If the cluster cannot be reached, the hub still knows of claims.
func (l *Collector) inCluster(ctx context.Context, c *fleet.Cluster, q Question) (*why.Thing, error) {
	side, err := l.hub.Workload(ctx, c)
	if err != nil {
		return l.unreachable(ctx, c, q, err.Error()), nil
	}
	kind, err := side.KindFor(q.Kind)
	switch {
	case errors.Is(err, fleet.ErrNoSuchKind):
		return l.unserved(ctx, c, q)
	case err != nil:
		return l.unreachable(ctx, c, q, fleet.Explain(err)), nil
	}
	t := l.thing(ctx, side, why.RoleObject, kind, q.Namespace, q.Name)
	if t.Absent == why.NotFound {
		return nil, fmt.Errorf("there is no %s in the cluster %s", t.Ref, c.Name)
	}
	return l.walk(ctx, c, side, kind, t), nil
}

// walk follows an object of a workload cluster to its dependencies.
func (l *Collector) walk(ctx context.Context, c *fleet.Cluster, side *fleet.ClusterClient, kind schema.GroupVersionKind, t *why.Thing) *why.Thing {
	if kind.GroupKind() == ApplicationKind().GroupKind() {
		return l.application(ctx, c, side, t)
	}
	if publisher, _ := l.findPublisher(ctx, kind.GroupKind()); publisher != nil ||
		t.Object != nil && agentReason(t.Object) != "" {
		return l.claim(ctx, c, side, kind, t)
	}
	t.Needs = append(t.Needs, l.cluster(ctx, c, why.For{Use: l.findUse(t)}))
	if t.Object == nil {
		return t
	}
	t.Needs = append(t.Needs, l.sources(ctx, side, t.Object)...)
	return l.owned(ctx, side, t)
}

// findUse returns what the class must allow for an object that is neither a claim nor an Application.
func (l *Collector) findUse(t *why.Thing) why.Use {
	if t.Object != nil {
		if spec, ok := t.Object.Object["spec"].(map[string]any); ok && spec["references"] != nil {
			return why.UseReferences
		}
	}
	return ""
}

// unreachable handles an object of a cluster that cannot be reached.
func (l *Collector) unreachable(ctx context.Context, c *fleet.Cluster, q Question, message string) *why.Thing {
	t := absent(&why.Thing{
		Ref: why.Ref{Where: c.Name, Kind: q.Kind, Namespace: q.Namespace, Name: q.Name}, Role: why.RoleObject,
	}, why.NotLooked, "The cluster cannot be queried: "+message)
	if kind, err := l.hub.KindFor(q.Kind); err == nil {
		t.Ref.Kind = kind.Kind
		if publisher, _ := l.findPublisher(ctx, kind.GroupKind()); publisher != nil {
			return l.claim(ctx, c, nil, kind, t)
		}
	}
	t.Needs = append(t.Needs, l.cluster(ctx, c, why.For{Use: useOfKind(q.Kind)}))
	return t
}

func useOfKind(kind string) why.Use {
	if strings.HasSuffix(kind, ApplicationKind().Group) {
		return why.UseApplications
	}
	return ""
}

// unserved handles an object of a kind that its cluster does not serve: a missing claim kind, or a mistake.
func (l *Collector) unserved(ctx context.Context, c *fleet.Cluster, q Question) (*why.Thing, error) {
	t := absent(&why.Thing{
		Ref: why.Ref{Where: c.Name, Kind: q.Kind, Namespace: q.Namespace, Name: q.Name}, Role: why.RoleObject,
	}, why.NotServed, "")
	if useOfKind(q.Kind) != "" {
		t.Ref.Kind = ApplicationKind().Kind
		return l.application(ctx, c, nil, t), nil
	}
	kind, err := l.hub.KindFor(q.Kind)
	if err == nil {
		if publisher, _ := l.findPublisher(ctx, kind.GroupKind()); publisher != nil {
			t.Ref.Kind = kind.Kind
			return l.claim(ctx, c, nil, kind, t), nil
		}
	}
	return nil, fmt.Errorf("the cluster %s serves no kind %q, and the hub publishes none of that name", c.Name, q.Kind)
}

// anywhere searches for an object in the hub, and then in every connected cluster.
func (l *Collector) anywhere(ctx context.Context, q Question) (*why.Thing, error) {
	kind, err := l.hub.KindFor(q.Kind)
	if err == nil {
		t := l.thing(ctx, l.hub.ClusterClient, why.RoleObject, kind, q.Namespace, q.Name)
		if t.Absent != why.NotFound || kind.Group == fleetv1alpha1.GroupVersion.Group {
			return l.inHub(ctx, kind, t)
		}
	} else if !errors.Is(err, fleet.ErrNoSuchKind) {
		return nil, err
	}
	return l.everywhere(ctx, q)
}

// inHub walks from an object of the hub. The object of a claim is reached from the claim.
func (l *Collector) inHub(ctx context.Context, kind schema.GroupVersionKind, t *why.Thing) (*why.Thing, error) {
	if t.Absent == why.NotFound {
		return nil, fmt.Errorf("there is no %s in the hub", t.Ref)
	}
	switch kind.GroupKind() {
	case fleetv1alpha1.GroupVersion.WithKind("ClusterImport").GroupKind():
		return l.imported(ctx, t), nil
	case classKind().GroupKind():
		t.Role = why.RoleClass
		return l.class(ctx, t), nil
	case crossplane.XRDKind.GroupKind():
		t.Role = why.RolePublisher
		return l.publisher(ctx, t), nil
	}
	if t.Object == nil {
		return t, nil
	}
	if source, named := ownership.GetSource(t.Object); named {
		if c := fleet.ByIdentifier(l.clusters, source.Identifier); c != nil {
			q := Question{Kind: kind.Kind + "." + kind.Version + "." + kind.Group, Namespace: source.Namespace, Name: t.Ref.Name}
			if claim, err := l.inCluster(ctx, c, q); err == nil {
				return claim, nil
			}
		}
	}
	t.Needs = append(t.Needs, l.sources(ctx, l.hub.ClusterClient, t.Object)...)
	return l.owned(ctx, l.hub.ClusterClient, l.composed(ctx, t)), nil
}

// everywhere searches for an object in all clusters. It must be in one, or the user must name the cluster.
func (l *Collector) everywhere(ctx context.Context, q Question) (*why.Thing, error) {
	var found []*fleet.Cluster
	var unqueried []string
	for i := range l.clusters {
		c := &l.clusters[i]
		if c.State != fleet.StateConnected {
			unqueried = append(unqueried, c.Name)
			continue
		}
		there, err := l.has(ctx, c, q)
		if err != nil {
			unqueried = append(unqueried, c.Name)
		}
		if there {
			found = append(found, c)
		}
	}
	switch len(found) {
	case 1:
		return l.inCluster(ctx, found[0], q)
	case 0:
		err := fmt.Errorf("there is no %s %s/%s in the hub, nor in a cluster that could be queried", q.Kind, q.Namespace, q.Name)
		if len(unqueried) > 0 {
			err = fmt.Errorf("%w; not queried: %s (name one with --cluster)", err, strings.Join(unqueried, ", "))
		}
		return nil, err
	default:
		names := make([]string, len(found))
		for i, c := range found {
			names[i] = c.Name
		}
		return nil, fmt.Errorf("several clusters have a %s %s/%s, name one with --cluster: %s", q.Kind, q.Namespace, q.Name, strings.Join(names, ", "))
	}
}

// has reports whether a cluster has an object. If the kind is not served, it has not.
func (l *Collector) has(ctx context.Context, c *fleet.Cluster, q Question) (bool, error) {
	side, err := l.hub.Workload(ctx, c)
	if err != nil {
		return false, err
	}
	kind, err := side.KindFor(q.Kind)
	if err != nil {
		return false, ignoring(err, fleet.ErrNoSuchKind)
	}
	_, err = side.Get(ctx, kind, types.NamespacedName{Namespace: q.Namespace, Name: q.Name})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, client.IgnoreNotFound(err)
}

func ignoring(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}
