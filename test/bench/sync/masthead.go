// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/masthead-dev/masthead/test/bench/apiserver"
	"github.com/masthead-dev/masthead/test/bench/claims"
	"github.com/masthead-dev/masthead/test/harness"
)

// mastheadSubject is bin/manager, with the rights of config/, as in a Deployment of one replica.
type mastheadSubject struct {
	world   *world
	manager *harness.Manager
}

func (m *mastheadSubject) user() string { return "system:serviceaccount:masthead-system:masthead" }

func (m *mastheadSubject) pids() []int { return []int{m.manager.PID()} }

func (m *mastheadSubject) metrics() func(context.Context) (harness.Metrics, error) {
	return m.manager.Metrics
}

const applicationsPath = "/apis/apps.masthead.dev/v1alpha1/applications"

// start makes the hub offer the kind as Crossplane would, and starts the manager.
func (m *mastheadSubject) start(ctx context.Context, k claims.Kind) error {
	w := m.world
	if err := k.Offer(ctx, w.hub); err != nil {
		return err
	}
	if err := m.launch(ctx); err != nil {
		return err
	}
	if err := w.waitServed(ctx, k); err != nil {
		return err
	}
	shown := func(ctx context.Context, a *apiserver.Client) error {
		return errors.Join(a.WaitServed(ctx, applicationsPath+"?limit=1"), a.WaitServed(ctx, k.XRDPath()))
	}
	if err := w.everywhere(ctx, shown); err != nil {
		return err
	}
	// The benchmark measures a manager that starts with clusters in which its objects exist already, as after a rollout.
	if err := m.manager.Stop(ctx); err != nil {
		return err
	}
	return m.launch(ctx)
}

func (m *mastheadSubject) launch(ctx context.Context) error {
	flags := append([]string{"--leader-elect=true"}, m.world.settings.managerFlags...)
	var err error
	m.manager, err = harness.StartManager(ctx, m.world.fleet, flags...)
	return err
}

// stop ends the manager. So that its next run does not follow the claims of this one, their definitions are disowned.
func (m *mastheadSubject) stop(ctx context.Context, k claims.Kind) error {
	w := m.world
	var err error
	if m.manager != nil {
		err = m.manager.Kill()
		m.manager = nil
	}
	return errors.Join(err,
		w.hub.Remove(ctx, k.XRDPath()),
		w.everywhere(ctx, func(ctx context.Context, a *apiserver.Client) error { return disown(ctx, a, k) }))
}

// bindingPath is the path of the policy binding that forbids everybody but Masthead to change what Masthead keeps in a
// workload cluster.
const bindingPath = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/masthead-read-only"

// disown makes a kind's definition one that is not Masthead's. The API server still forbids that for a moment after the
// binding has been deleted.
func disown(ctx context.Context, a *apiserver.Client, k claims.Kind) error {
	if err := a.Remove(ctx, bindingPath); err != nil {
		return err
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		last = a.Do(ctx, http.MethodPatch, apiserver.CRDPath+k.CRDName(), apiserver.TypeMerge, []byte(`{"metadata":{"labels":{"masthead.dev/managed-by":null}}}`))
		return last == nil || errors.Is(last, apiserver.ErrNotFound), nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}
