// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/masthead-dev/masthead/test/bench/apiserver"
	"github.com/masthead-dev/masthead/test/bench/auditlog"
	"github.com/masthead-dev/masthead/test/bench/claims"
	"github.com/masthead-dev/masthead/test/harness"
	"github.com/masthead-dev/masthead/test/localfleet"
)

// startTogether is how many workload clusters are started at once.
const startTogether = 4

// world is the fleet on which everything is measured.
type world struct {
	settings  settings
	fleet     *localfleet.Fleet
	hub       *apiserver.Client
	workloads []*apiserver.Client
	subjects  map[string]subject
	kinds     int
}

// newWorld starts a hub with Masthead's definitions and rights, and the first workload clusters.
func newWorld(ctx context.Context, s settings, clusters int) (*world, error) {
	repository, err := localfleet.Repository()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "masthead-bench-sync-")
	if err != nil {
		return nil, err
	}
	hubManifest, workloadManifest, err := claims.Manifests(dir)
	if err != nil {
		return nil, err
	}
	fleet, err := localfleet.Up(ctx, localfleet.Options{
		Dir: filepath.Join(dir, "fleet"), Workloads: localfleet.WorkloadNames(clusters), Log: os.Stderr,
		Audit: true, Fast: true, StopWithParent: true, HubManifests: []string{hubManifest},
		WorkloadRBAC: []string{filepath.Join(repository, "config", "workload"), workloadManifest},
	})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	w := &world{settings: s, fleet: fleet}
	if w.hub, err = apiserver.New(fleet, localfleet.HubName); err != nil {
		return w, err
	}
	if err := harness.InstallManifests(ctx, fleet); err != nil {
		return w, err
	}
	if err := claims.CreateClass(ctx, w.hub); err != nil {
		return w, err
	}
	w.subjects = map[string]subject{
		masthead: &mastheadSubject{world: w},
		shipped:  &konnectorSubject{world: w, program: s.konnector, prepared: map[string]bool{}},
		lifted:   &konnectorSubject{world: w, program: s.lifted, prepared: map[string]bool{}},
	}
	return w, w.join(ctx)
}

// grow starts more workload clusters.
func (w *world) grow(ctx context.Context, clusters int) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(startTogether)
	for _, name := range localfleet.WorkloadNames(clusters)[len(w.workloads):] {
		group.Go(func() error { return w.fleet.Add(groupCtx, name) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return w.join(ctx)
}

// join finds the new workload clusters, and enrols them.
func (w *world) join(ctx context.Context) error {
	names, err := w.fleet.Clusters()
	if err != nil {
		return err
	}
	known := map[string]bool{localfleet.HubName: true}
	for _, a := range w.workloads {
		known[a.Cluster] = true
	}
	for _, name := range names {
		if known[name] {
			continue
		}
		a, err := apiserver.New(w.fleet, name)
		if err != nil {
			return err
		}
		w.workloads = append(w.workloads, a)
		label := []byte(`{"metadata":{"labels":{"masthead.dev/enroll":"` + claims.ClassName + `"}}}`)
		if err := w.hub.Do(ctx, "PATCH", "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters/"+name, apiserver.TypeMerge, label); err != nil {
			return fmt.Errorf("cannot enrol cluster %q: %w", name, err)
		}
	}
	return nil
}

// down ends everything and removes its files.
func (w *world) down(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Minute)
	defer cancel()
	return errors.Join(w.fleet.Down(ctx), os.RemoveAll(filepath.Dir(w.fleet.Dir())))
}

// tail begins to count the requests of a user.
func (w *world) tail(user string) (*auditlog.Tails, error) {
	var workloads []string
	for _, a := range w.workloads {
		workloads = append(workloads, w.fleet.AuditLog(a.Cluster))
	}
	return auditlog.NewTails(user, w.fleet.AuditLog(localfleet.HubName), workloads...)
}
