// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"fmt"
	"time"

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

// unserved finds out why a kind is not served although its definition is in place, and when to check again. An API
// server accepts a definition whose names are taken, and never serves its kind. Shortly after the write, it is no
// problem; nor if the definition says that the kind is served: then the watch is behind.
func (r *Reconciler) unserved(
	ctx context.Context, w *index.Cluster, req mcreconcile.Request, kind kindwatch.Kind,
) (again time.Duration, p *condition.Error, err error) {
	now := r.clock.Now()
	if left := w.UnservedSince(req.Name, now).Add(servedPatience).Sub(now); left > 0 {
		return left, nil, nil
	}
	crd, err := r.get(ctx, w.Reader, req.Name)
	if err != nil {
		return 0, nil, err
	}
	if crd == nil {
		return condition.SlowRetry(), nil, nil // Its deletion makes a new request.
	}
	why, not := NotEstablished(crd)
	if !not {
		// An API server serves a kind a moment after it says so, and the watch may be in a long back-off.
		w.Watcher.Retry(kind.GroupResource())
		return servedPatience, nil, nil
	}
	return condition.SlowRetry(), &condition.Error{
		Reason: fleetv1alpha1.ReasonDefinitionNotServed,
		Message: fmt.Sprintf("The cluster has the CustomResourceDefinition %q and does not serve its kind: %s",
			req.Name, multicluster.BoundedText(why)),
	}, nil
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
