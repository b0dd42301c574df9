// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fakecloud

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Run runs the providers in a hub until the context ends, for every kind of managed resource that the hub serves when
// Run starts.
func (c *Cloud) Run(ctx context.Context, config *rest.Config) error {
	providers, err := c.Providers(config)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return fmt.Errorf("cannot set up the providers: %w", err)
	}
	kinds, err := providers.Served()
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		reconciler, err := providers.Reconciler(ctx, kind)
		if err != nil {
			return unlessEnded(ctx, err)
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind)
		// Several clouds may run in one process.
		unchecked := true
		provider, err := controller.New("fakecloud/"+kind.GroupKind().String(), mgr, controller.Options{
			Reconciler: reconciler, SkipNameValidation: &unchecked,
		})
		if err != nil {
			return fmt.Errorf("cannot set up the provider of %s: %w", kind, err)
		}
		if err := provider.Watch(source.Kind(mgr.GetCache(), object, &handler.TypedEnqueueRequestForObject[*unstructured.Unstructured]{})); err != nil {
			return fmt.Errorf("cannot watch %s: %w", kind, err)
		}
	}
	if err := mgr.Start(ctx); err != nil {
		return unlessEnded(ctx, fmt.Errorf("cannot run the providers: %w", err))
	}
	return nil
}

// unlessEnded returns the error of the providers, unless the context has ended.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}
