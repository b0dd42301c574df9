// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/masthead-dev/masthead/test/bench/apiserver"
	"github.com/masthead-dev/masthead/test/bench/auditlog"
	"github.com/masthead-dev/masthead/test/harness"
	"github.com/masthead-dev/masthead/test/localfleet"
)

//go:embed manifests
var manifests embed.FS

// world is the fleet on which everything is measured: a hub and one workload cluster.
type world struct {
	settings settings
	fleet    *localfleet.Fleet
	workload *apiserver.Client
	subjects map[string]subject

	// prepared are the subjects whose kind is installed, or could not be installed.
	prepared map[string]error

	// runs is how many sets of Applications there have been, and ballast how many unrelated objects there are.
	runs, ballast int
}

// newWorld starts the clusters, and enrols the workload cluster.
func newWorld(ctx context.Context, s settings) (*world, error) {
	repository, err := localfleet.Repository()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "masthead-bench-application-")
	if err != nil {
		return nil, err
	}
	files, err := writeManifests(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	names := localfleet.WorkloadNames(1)
	fleet, err := localfleet.Up(ctx, localfleet.Options{
		Dir: filepath.Join(dir, "fleet"), Workloads: names, Log: os.Stderr, Audit: true, Fast: true, StopWithParent: true,
		HubManifests: []string{files["hub.yaml"]},
		WorkloadRBAC: []string{filepath.Join(repository, "config", "workload"), files["workload.yaml"]},
	})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	w := &world{settings: s, fleet: fleet, prepared: map[string]error{}}
	w.subjects = map[string]subject{masthead: &mastheadSubject{world: w}, peerName: &peerSubject{world: w}}
	if w.workload, err = apiserver.New(fleet, names[0]); err != nil {
		return w, err
	}
	return w, errors.Join(w.endControllers(), w.enrol(ctx))
}

// writeManifests writes the embedded manifests into a folder, and returns their paths by name.
func writeManifests(dir string) (map[string]string, error) {
	entries, err := manifests.ReadDir("manifests")
	if err != nil {
		return nil, err
	}
	paths := map[string]string{}
	for _, e := range entries {
		content, err := manifests.ReadFile("manifests/" + e.Name())
		if err != nil {
			return nil, err
		}
		paths[e.Name()] = filepath.Join(dir, e.Name())
		if err := os.WriteFile(paths[e.Name()], content, 0o600); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// endControllers stops the controller manager of the workload cluster. The benchmark itself writes the statuses of
// Deployments, and the Deployment controller would correct them, since there are no nodes. So there is no garbage
// collection either.
func (w *world) endControllers() error {
	processes, err := w.fleet.Processes(w.workload.Cluster)
	if err != nil {
		return err
	}
	for _, p := range processes {
		if p.Name == localfleet.ControllerManager {
			return syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
	return fmt.Errorf("cluster %q has no controller manager", w.workload.Cluster)
}

// enrol installs Masthead in the hub and enrols the workload cluster, for Applications only.
func (w *world) enrol(ctx context.Context) error {
	hub, err := apiserver.New(w.fleet, localfleet.HubName)
	if err != nil {
		return err
	}
	if err := harness.InstallManifests(ctx, w.fleet); err != nil {
		return err
	}
	class := apiserver.Manifest("fleet.masthead.dev/v1alpha1", "EnrollmentClass", "", "bench", map[string]any{"spec": map[string]any{
		"allowedNamespaces": map[string]any{"list": []string{"default"}},
		"agent":             map[string]any{"mode": "Disabled"},
	}})
	if err := hub.Apply(ctx, "/apis/fleet.masthead.dev/v1alpha1/enrollmentclasses/bench", class); err != nil {
		return err
	}
	label := []byte(`{"metadata":{"labels":{"masthead.dev/enroll":"bench"}}}`)
	path := "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters/" + w.workload.Cluster
	if err := hub.Do(ctx, http.MethodPatch, path, apiserver.TypeMerge, label); err != nil {
		return fmt.Errorf("cannot enrol cluster %q: %w", w.workload.Cluster, err)
	}
	return nil
}

// prepare installs the kind of a program, if that has not been tried before.
func (w *world) prepare(ctx context.Context, name string) (subject, error) {
	s := w.subjects[name]
	err, tried := w.prepared[name]
	if !tried {
		if err = s.prepare(ctx); err != nil {
			err = errors.Join(fmt.Errorf("cannot install the kind of %s: %w", name, err), s.stop())
		}
		w.prepared[name] = err
	}
	return s, err
}

// down ends everything and removes its files.
func (w *world) down(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Minute)
	defer cancel()
	return errors.Join(w.fleet.Down(ctx), os.RemoveAll(filepath.Dir(w.fleet.Dir())))
}

// tails begins to count the requests of a user.
func (w *world) tails(user string) (*auditlog.Tails, error) {
	return auditlog.NewTails(user, w.fleet.AuditLog(localfleet.HubName), w.fleet.AuditLog(w.workload.Cluster))
}
