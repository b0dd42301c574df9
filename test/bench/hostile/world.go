// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/masthead-dev/masthead/internal/test/hostile"
	"github.com/masthead-dev/masthead/test/bench/apiserver"
	"github.com/masthead-dev/masthead/test/bench/claims"
	"github.com/masthead-dev/masthead/test/harness"
	"github.com/masthead-dev/masthead/test/localfleet"
)

// world is a fleet of real clusters with the manager over it.
type world struct {
	fleet     *localfleet.Fleet
	hub       *apiserver.Client
	workloads []*apiserver.Client
	manager   *harness.Manager
	kind      claims.Kind
	// servers are the hostile API servers that are enrolled; nil if there are none.
	servers *servers
}

// newWorld starts a hub and honest clusters, enrols these and starts the manager. It returns when a claim could be
// created.
func newWorld(ctx context.Context, s settings) (*world, error) {
	repository, err := localfleet.Repository()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "masthead-bench-hostile-")
	if err != nil {
		return nil, err
	}
	hubManifest, workloadManifest, err := claims.Manifests(dir)
	if err != nil {
		return nil, err
	}
	names := localfleet.WorkloadNames(s.honest)
	fleet, err := localfleet.Up(ctx, localfleet.Options{
		Dir: filepath.Join(dir, "fleet"), Workloads: names, Log: os.Stderr, Fast: true, StopWithParent: true,
		HubManifests: []string{hubManifest},
		WorkloadRBAC: []string{filepath.Join(repository, "config", "workload"), workloadManifest},
	})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	w := &world{fleet: fleet, kind: claims.KindOfRun(1)}
	if w.hub, err = apiserver.New(fleet, localfleet.HubName); err != nil {
		return w, err
	}
	if err := harness.InstallManifests(ctx, fleet); err != nil {
		return w, err
	}
	if err := errors.Join(claims.CreateClass(ctx, w.hub), w.kind.Offer(ctx, w.hub)); err != nil {
		return w, err
	}
	// The Deployment sets this for the manager; no other program of the fleet gets it.
	if err := os.Setenv("GOMEMLIMIT", s.memoryLimit); err != nil {
		return w, err
	}
	var flags []string
	if s.pprof != "" {
		flags = append(flags, "--pprof-bind-address="+s.pprof)
	}
	w.manager, err = harness.StartManager(ctx, fleet, flags...)
	if err := errors.Join(err, os.Unsetenv("GOMEMLIMIT")); err != nil {
		return w, err
	}
	for _, name := range names {
		a, err := apiserver.New(fleet, name)
		if err != nil {
			return w, err
		}
		w.workloads = append(w.workloads, a)
		label := []byte(`{"metadata":{"labels":{"masthead.dev/enroll":"` + claims.ClassName + `"}}}`)
		path := "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters/" + name
		if err := w.hub.Do(ctx, http.MethodPatch, path, apiserver.TypeMerge, label); err != nil {
			return w, fmt.Errorf("cannot enrol cluster %q: %w", name, err)
		}
		if err := a.WaitServed(ctx, w.kind.Collection(claims.Namespace)+"?limit=1"); err != nil {
			return w, err
		}
	}
	return w, nil
}

// down ends everything and removes its files.
func (w *world) down(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Minute)
	defer cancel()
	var err error
	if w.manager != nil {
		err = w.manager.Kill()
	}
	return errors.Join(err, w.fleet.Down(ctx), os.RemoveAll(filepath.Dir(w.fleet.Dir())))
}

const secretsPath = "/api/v1/namespaces/default/secrets"

func attackName(a hostile.Attack) string { return "hostile-" + a.Name }

// enrol enrols each hostile API server by a Secret.
func (w *world) enrol(ctx context.Context, servers *servers) error {
	for _, a := range servers.attacks {
		secret := apiserver.Manifest("v1", "Secret", "default", attackName(a), map[string]any{
			"data": map[string]any{"kubeconfig": base64.StdEncoding.EncodeToString(servers.kubeconfigs[a.Name])},
		})
		if err := w.hub.Apply(ctx, secretsPath+"/"+attackName(a), secret); err != nil {
			return err
		}
		label := []byte(`{"metadata":{"labels":{"masthead.dev/enroll":"` + claims.ClassName + `"}}}`)
		if err := w.hub.Do(ctx, http.MethodPatch, secretsPath+"/"+attackName(a), apiserver.TypeMerge, label); err != nil {
			return err
		}
	}
	return nil
}

// unenrol un-enrols hostile API servers, and waits until the inventory has deleted their ClusterProfiles.
func (w *world) unenrol(ctx context.Context, attacks []hostile.Attack) error {
	var errs []error
	for _, a := range attacks {
		errs = append(errs, w.hub.Remove(ctx, secretsPath+"/"+attackName(a)))
	}
	for _, a := range attacks {
		errs = append(errs, until(ctx, func() (bool, error) {
			_, err := w.profile(ctx, a)
			if errors.Is(err, apiserver.ErrNotFound) {
				return true, nil
			}
			return false, err
		}))
	}
	return errors.Join(errs...)
}

// profile returns the ClusterProfile of a hostile cluster.
func (w *world) profile(ctx context.Context, a hostile.Attack) (*profile, error) {
	var p profile
	err := w.hub.Get(ctx, "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/default/clusterprofiles/kubeconfig-"+attackName(a), &p)
	return &p, err
}

// profile is the part of a ClusterProfile that is read.
type profile struct {
	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// wrong returns the conditions that report a problem.
func (p *profile) wrong() (wrong []condition) {
	if p == nil {
		return nil
	}
	for _, c := range p.Status.Conditions {
		if c.Status == "False" && c.Reason != "Connecting" {
			wrong = append(wrong, c)
		}
	}
	return wrong
}

// goneAfter is the timeout for un-enrolment.
const goneAfter = 5 * time.Minute

func until(ctx context.Context, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, goneAfter)
	defer cancel()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it takes too long: %w", ctx.Err())
		case <-ticker.C:
		}
	}
}
