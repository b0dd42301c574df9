// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/masthead-dev/masthead/test/bench/sync/auditlog"
	"github.com/masthead-dev/masthead/test/harness"
	"github.com/masthead-dev/masthead/test/localfleet"
)

//go:embed manifests
var manifests embed.FS

// startTogether is how many workload clusters are started at once.
const startTogether = 4

// world is the fleet on which everything is measured.
type world struct {
	settings  settings
	fleet     *localfleet.Fleet
	hub       *api
	workloads []*api
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
	files := map[string]string{}
	for _, name := range []string{"hub", "workload"} {
		content, err := manifests.ReadFile("manifests/" + name + ".yaml")
		if err != nil {
			return nil, err
		}
		files[name] = filepath.Join(dir, name+".yaml")
		if err := os.WriteFile(files[name], content, 0o600); err != nil {
			return nil, err
		}
	}
	fleet, err := localfleet.Up(ctx, localfleet.Options{
		Dir: filepath.Join(dir, "fleet"), Workloads: localfleet.WorkloadNames(clusters), Log: os.Stderr,
		Audit: true, StopWithParent: true, HubManifests: []string{files["hub"]},
		WorkloadRBAC: []string{filepath.Join(repository, "config", "workload"), files["workload"]},
	})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	w := &world{settings: s, fleet: fleet}
	if w.hub, err = newAPI(fleet, localfleet.HubName); err != nil {
		return w, err
	}
	if err := harness.InstallManifests(ctx, fleet); err != nil {
		return w, err
	}
	class := manifest("fleet.masthead.dev/v1alpha1", "EnrollmentClass", "", "bench", map[string]any{"spec": map[string]any{
		"allowedNamespaces": map[string]any{"list": []string{"default"}},
		"agent":             map[string]any{"defaultTargetNamespace": target, "apiGroups": []string{group}},
	}})
	if err := w.hub.apply(ctx, "/apis/fleet.masthead.dev/v1alpha1/enrollmentclasses/bench", class); err != nil {
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

// join finds the workload clusters that are new.
func (w *world) join(ctx context.Context) error {
	names, err := w.fleet.Clusters()
	if err != nil {
		return err
	}
	known := map[string]bool{localfleet.HubName: true}
	for _, a := range w.workloads {
		known[a.cluster] = true
	}
	for _, name := range names {
		if known[name] {
			continue
		}
		a, err := newAPI(w.fleet, name)
		if err != nil {
			return err
		}
		w.workloads = append(w.workloads, a)
		label := []byte(`{"metadata":{"labels":{"masthead.dev/enroll":"bench"}}}`)
		if err := w.hub.do(ctx, "PATCH", "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters/"+name, typeMerge, label); err != nil {
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

// tails are the audit logs of all clusters.
type tails struct {
	user           string
	hub            *auditlog.Tail
	workloads      []*auditlog.Tail
	atHub, atWorks auditlog.Counts
}

// tail begins to count the requests of a user.
func (w *world) tail(user string) (*tails, error) {
	t := &tails{user: user, atHub: auditlog.Counts{}, atWorks: auditlog.Counts{}}
	var err error
	if t.hub, err = auditlog.NewTail(w.fleet.AuditLog(localfleet.HubName)); err != nil {
		return nil, err
	}
	for _, a := range w.workloads {
		log, err := auditlog.NewTail(w.fleet.AuditLog(a.cluster))
		if err != nil {
			return nil, err
		}
		t.workloads = append(t.workloads, log)
	}
	return t, nil
}

// read counts what was logged since the last time, and says how much of it was work.
func (t *tails) read() (work int, err error) {
	c, err := t.hub.Count(t.user)
	if err != nil {
		return 0, err
	}
	t.atHub.Add(c)
	work = c.Of(auditlog.Work)
	for _, log := range t.workloads {
		if c, err = log.Count(t.user); err != nil {
			return 0, err
		}
		t.atWorks.Add(c)
		work += c.Of(auditlog.Work)
	}
	return work, nil
}

// quiet is how long nothing was asked for when a program is said to be at rest.
const quiet = 4 * time.Second

// settle waits until the user has asked for nothing for a while.
func (t *tails) settle(ctx context.Context) error {
	deadline, since := time.Now().Add(time.Minute), time.Now()
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for time.Since(since) < quiet {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		work, err := t.read()
		if err != nil {
			return err
		}
		if work > 0 {
			since = time.Now()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not come to rest: %s; %s", t.user, t.atWorks, t.atHub)
		}
	}
	return nil
}
