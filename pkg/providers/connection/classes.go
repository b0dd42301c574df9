// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	crsource "sigs.k8s.io/controller-runtime/pkg/source"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// Class returns an EnrollmentClass, or a NotFound error.
func Class(ctx context.Context, classes client.Reader, name string) (*fleetv1alpha1.EnrollmentClass, error) {
	class := &fleetv1alpha1.EnrollmentClass{}
	if err := classes.Get(ctx, types.NamespacedName{Name: name}, class); err != nil {
		return nil, fmt.Errorf("cannot get EnrollmentClass %q: %w", name, err)
	}
	return class, nil
}

// ClassQueue is the queue of a controller that reconciles clusters.
type ClassQueue = workqueue.TypedRateLimitingInterface[mcreconcile.Request]

// Classes returns the clusters enrolled with a class. Provider implements it.
type Classes interface {
	// InClass returns the enrolled clusters of a class, unordered. Its cost depends only on that class.
	InClass(class string) []mcr.ClusterName
}

// ClassSource watches the EnrollmentClasses of the hub, and calls changed for each cluster of a class that was created,
// changed or deleted. It ignores status, which changes with the fleet.
func ClassSource[R comparable](
	c cache.Cache, fleet Classes, changed func(mcr.ClusterName, workqueue.TypedRateLimitingInterface[R]),
) crsource.TypedSource[R] {
	return crsource.TypedKind(c, &fleetv1alpha1.EnrollmentClass{}, classHandler(fleet, changed),
		predicate.TypedGenerationChangedPredicate[*fleetv1alpha1.EnrollmentClass]{})
}

func classHandler[R comparable](
	fleet Classes, changed func(mcr.ClusterName, workqueue.TypedRateLimitingInterface[R]),
) handler.TypedEventHandler[*fleetv1alpha1.EnrollmentClass, R] {
	type queue = workqueue.TypedRateLimitingInterface[R]
	clusters := func(class *fleetv1alpha1.EnrollmentClass, q queue) {
		for _, name := range fleet.InClass(class.Name) {
			changed(name, q)
		}
	}
	return handler.TypedFuncs[*fleetv1alpha1.EnrollmentClass, R]{
		CreateFunc: func(_ context.Context, e crevent.TypedCreateEvent[*fleetv1alpha1.EnrollmentClass], q queue) {
			clusters(e.Object, q)
		},
		UpdateFunc: func(_ context.Context, e crevent.TypedUpdateEvent[*fleetv1alpha1.EnrollmentClass], q queue) {
			clusters(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e crevent.TypedDeleteEvent[*fleetv1alpha1.EnrollmentClass], q queue) {
			clusters(e.Object, q)
		},
	}
}

// EnqueueCluster enqueues a cluster itself: a ClassSource's changed for controllers whose requests name only clusters.
func EnqueueCluster(name mcr.ClusterName, q ClassQueue) {
	q.Add(mcreconcile.Request{ClusterName: name})
}
