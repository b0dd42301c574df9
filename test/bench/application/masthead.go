// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"time"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/test/bench/apiserver"
	"github.com/masthead-dev/masthead/test/harness"
)

// mastheadSubject is bin/manager, with the rights of config/. It runs against the hub, in which the workload cluster is
// enrolled.
type mastheadSubject struct {
	world      *world
	kubeconfig string
	manager    *harness.Manager
}

func (m *mastheadSubject) user() string { return "system:serviceaccount:masthead-system:masthead" }

// prepare lets the manager install its kind, as it does in every cluster.
func (m *mastheadSubject) prepare(ctx context.Context) error {
	var err error
	if m.kubeconfig, err = harness.ManagerKubeconfig(ctx, m.world.fleet); err != nil {
		return err
	}
	if _, err := m.start(ctx, 0); err != nil {
		return err
	}
	return errors.Join(m.world.workload.WaitServed(ctx, m.kind().collection("")+"?limit=1"), m.stop())
}

func (m *mastheadSubject) start(ctx context.Context, _ time.Duration) (running, error) {
	var err error
	if m.manager, err = harness.LaunchManager(m.world.fleet, m.kubeconfig, m.world.settings.managerFlags...); err != nil {
		return running{}, err
	}
	return running{pid: m.manager.PID(), exited: m.manager.Exited(), metrics: m.manager.Metrics}, m.manager.WaitReady(ctx)
}

func (m *mastheadSubject) stop() error {
	if m.manager == nil {
		return nil
	}
	err := m.manager.Kill()
	m.manager = nil
	return err
}

func (m *mastheadSubject) kind() applicationKind {
	return applicationKind{
		group: appsv1alpha1.GroupVersion.Group, version: appsv1alpha1.GroupVersion.Version, manifest: ourApplication,
		watch: func(ctx context.Context, each func(state), failed chan<- error) error {
			path := collection(appsv1alpha1.GroupVersion.Group, appsv1alpha1.GroupVersion.Version, applications, "")
			return apiserver.Watch(ctx, m.world.workload, path, func(o ourObject) { each(o.state()) }, failed)
		},
		verdict: func(ctx context.Context, namespace, name string) (string, error) {
			var o ourObject
			err := m.world.workload.Get(ctx, m.kind().collection(namespace)+"/"+name, &o)
			return o.verdict(), err
		},
	}
}

// ourObject is the part that is read of an Application of apps.masthead.dev.
type ourObject struct {
	apiserver.Meta

	Status appsv1alpha1.ApplicationStatus `json:"status"`
}

func (o ourObject) state() state {
	s := state{namespace: o.Metadata.Namespace, name: o.Metadata.Name}
	seen := 0
	for _, c := range o.Status.Components {
		if c.Installed == "True" {
			seen++
		}
		if c.Kind == "Deployment" {
			s.ready = c.Health == appsv1alpha1.HealthHealthy
		}
	}
	s.complete = seen == len(components())
	return s
}

func (o ourObject) verdict() string {
	if o.Status.ObservedGeneration <= 0 {
		return ""
	}
	words := []string{"health " + string(o.Status.Health), o.Status.ComponentsInstalled + " installed"}
	for _, c := range o.Status.Components {
		if c.Health != appsv1alpha1.HealthHealthy {
			words = append(words, c.Reason)
		}
	}
	return strings.Join(words, ", ")
}
