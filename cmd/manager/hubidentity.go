// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/masthead-dev/masthead/pkg/hubidentity"
)

// hubIdentity identifies this hub: what the operator sets, else the UID of its namespace kube-system.
func hubIdentity(ctx context.Context, cfg *rest.Config, o HubOptions) (hubidentity.Hub, error) {
	hub := hubidentity.Hub{ID: hubidentity.Identity(o.Identity), Name: o.Name}
	if hub.ID != "" {
		return hub, nil // Validate has checked it.
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return hubidentity.Hub{}, fmt.Errorf("cannot create a client for the hub: %w", err)
	}
	// The preflight has just succeeded, so a failure now is most likely brief.
	backoff := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 7}
	var last error
	err = wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		ns, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if last = err; err != nil {
			return false, nil //nolint:nilerr // It is tried again, and the last error is returned below.
		}
		hub.ID, err = hubidentity.Parse(string(ns.UID))
		return true, err
	})
	if last != nil {
		err = last
	}
	if err != nil {
		return hubidentity.Hub{}, fmt.Errorf("cannot get the hub's namespace kube-system, whose UID is the identity of the hub: %w", err)
	}
	return hub, nil
}
