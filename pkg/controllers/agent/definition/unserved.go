// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// servedPatience is how long an API server may take to serve a kind whose definition it has accepted.
const servedPatience = 5 * time.Second

// unserved returns why a kind is not served although its definition is in place. An API server accepts a definition
// whose names are taken, and never serves its kind. Shortly after the write, it is pending; so it is if the definition
// says that the kind is served: then the watch is behind.
func (r *Reconciler) unserved(ctx context.Context, w *index.Cluster, req mcreconcile.Request, kind kindwatch.Kind) error {
	now := r.Clock.Now()
	var since time.Time
	w.EditDefinition(req.Name, func(d *index.Definition) {
		if d.Unserved.IsZero() {
			d.Unserved = now
		}
		since = d.Unserved
	})
	if left := since.Add(servedPatience).Sub(now); left > 0 {
		return condition.PendingError{After: left}
	}
	crd, err := r.get(ctx, w.Reader, req.Name)
	if apierrors.IsNotFound(err) {
		return condition.PendingError{After: condition.SlowRetry()} // Its deletion makes a new request.
	}
	if err != nil {
		return err
	}
	why, not := NotEstablished(crd)
	if !not {
		// An API server serves a kind a moment after it says so, and the watch may be in a long back-off.
		w.Watcher.Retry(kind.GroupResource())
		return condition.PendingError{After: servedPatience}
	}
	return condition.NewError(fleetv1alpha1.ReasonDefinitionNotServed, fmt.Sprintf(
		"The cluster has the CustomResourceDefinition %q and does not serve its kind: %s", req.Name, multicluster.BoundedText(why)),
	).RetriedAfter(condition.SlowRetry())
}

// NotEstablished reports whether a definition says that its kind is not served, and why.
func NotEstablished(crd *unstructured.Unstructured) (why string, not bool) {
	if c, _ := condition.Find(crd, "NamesAccepted"); c.Status == "False" {
		return "its names are not accepted: " + c.Message, true
	}
	if c, _ := condition.Find(crd, "Established"); c.Status != "True" {
		return "it is not established: " + c.Message, true
	}
	return "", false
}
