// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package look

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/internal/cli/fleet"
	"github.com/masthead-dev/masthead/internal/cli/why"
)

// maxThings is the maximum number of objects in one walk.
const maxThings = 500

// A Collector answers one question. It is not safe for concurrent use.
type Collector struct {
	hub      *fleet.Hub
	clusters []fleet.Cluster

	looked int
	onWay  map[why.Ref]bool
}

// New returns a Collector for a fleet.
func New(hub *fleet.Hub, clusters []fleet.Cluster) *Collector {
	return &Collector{hub: hub, clusters: clusters, onWay: map[why.Ref]bool{}}
}

// newRef names an object.
func newRef(side *fleet.ClusterClient, kind, namespace, name string) why.Ref {
	return why.Ref{Where: side.Name, Kind: kind, Namespace: namespace, Name: name}
}

// thing fetches an object. The namespace is ignored for a cluster-scoped kind.
func (l *Collector) thing(ctx context.Context, side *fleet.ClusterClient, role why.Role, kind schema.GroupVersionKind, namespace, name string) *why.Thing {
	if kind.Version == "" {
		if m, err := side.Mapping(kind); err == nil {
			kind = m.GroupVersionKind
		}
	}
	if namespaced, err := side.IsNamespaced(kind); err == nil && !namespaced {
		namespace = ""
	}
	t := &why.Thing{Ref: newRef(side, kind.Kind, namespace, name), Role: role}
	if l.looked++; l.looked > maxThings {
		return absent(t, why.NotLooked, "Too many related objects: no more are read.")
	}
	obj, err := side.Get(ctx, kind, types.NamespacedName{Namespace: namespace, Name: name})
	return present(t, obj, err)
}

func present(t *why.Thing, obj *unstructured.Unstructured, err error) *why.Thing {
	switch {
	case err == nil:
		t.Object = obj
		return t
	case errors.Is(err, fleet.ErrNoSuchKind), isNoMatch(err):
		return absent(t, why.NotServed, "")
	case apierrors.IsNotFound(err):
		return absent(t, why.NotFound, "")
	default:
		return absent(t, why.NotLooked, fleet.Explain(err))
	}
}

func absent(t *why.Thing, why why.Absence, message string) *why.Thing {
	t.Absent, t.Message = why, message
	return t
}

// enter records that an object is on the path, and returns false if it already is: cycles are not followed.
func (l *Collector) enter(ref why.Ref) (leave func(), ok bool) {
	if l.onWay[ref] {
		return nil, false
	}
	l.onWay[ref] = true
	return func() { delete(l.onWay, ref) }, true
}
