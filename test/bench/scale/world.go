// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/masthead-dev/masthead/test/bench/apiserver"
	"github.com/masthead-dev/masthead/test/bench/auditlog"
	"github.com/masthead-dev/masthead/test/bench/claims"
	"github.com/masthead-dev/masthead/test/harness"
	"github.com/masthead-dev/masthead/test/localfleet"
	"github.com/masthead-dev/masthead/test/manyclusters"
)

const (
	// backing is the workload cluster whose API server plays all others. It is not enrolled itself.
	backing = "w1"
	// user is the manager's in the hub.
	user = "system:serviceaccount:masthead-system:masthead"
	// writers is the number of requests in flight when clusters are enrolled, or claims created.
	writers = 8
)

// world is a hub, the clusters that are played, and the manager.
type world struct {
	settings settings
	// clusters is how many are measured. The last one that is played is enrolled at the end.
	clusters   int
	fleet      *localfleet.Fleet
	hub, other *apiserver.Client
	proxy      *manyclusters.Proxy
	kind       claims.Kind
	kubeconfig string
	manager    *harness.Manager
	// tail is the hub's audit log, of which atHub was read.
	tail  *auditlog.Tail
	atHub auditlog.Counts
	// watches is the number of watches in a connected cluster.
	watches int
}

// newWorld starts a hub, and plays the clusters, of which the first one is enrolled.
func newWorld(ctx context.Context, s settings, n int) (w *world, err error) {
	dir, err := os.MkdirTemp("", "masthead-bench-scale-")
	if err != nil {
		return nil, err
	}
	hubManifest, _, err := claims.Manifests(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	fleet, err := localfleet.Up(ctx, localfleet.Options{
		Dir: filepath.Join(dir, "fleet"), Workloads: []string{backing}, Log: os.Stderr,
		Audit: true, Fast: true, StopWithParent: true, HubManifests: []string{hubManifest},
	})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	w = &world{settings: s, clusters: n, fleet: fleet, kind: claims.KindOfRun(1), atHub: auditlog.Counts{}}
	if w.tail, err = auditlog.NewTail(fleet.AuditLog(localfleet.HubName)); err != nil {
		return w, err
	}
	config, err := fleet.Config(backing)
	if err != nil {
		return w, err
	}
	if w.proxy, err = manyclusters.Start(ctx, config, n+1); err != nil {
		return w, err
	}
	if w.hub, err = apiserver.New(fleet, localfleet.HubName); err != nil {
		return w, err
	}
	if w.other, err = apiserver.New(fleet, backing); err != nil {
		return w, err
	}
	if err := harness.InstallManifests(ctx, fleet); err != nil {
		return w, err
	}
	if err := errors.Join(claims.CreateClass(ctx, w.hub), w.kind.Offer(ctx, w.hub)); err != nil {
		return w, err
	}
	if w.kubeconfig, err = harness.ManagerKubeconfig(ctx, fleet); err != nil {
		return w, err
	}
	return w, w.enrol(ctx, 0, 1)
}

// down ends everything and removes its files.
func (w *world) down(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Minute)
	defer cancel()
	var err error
	if w.manager != nil {
		err = w.manager.Kill()
	}
	if w.proxy != nil {
		w.proxy.Close()
	}
	return errors.Join(err, w.fleet.Down(ctx), os.RemoveAll(filepath.Dir(w.fleet.Dir())))
}

// launch starts the manager, and does not wait. It has no lease, whose time-out would be measured after a crash.
func (w *world) launch() (err error) {
	// The Deployment sets this for the manager; no other program of the fleet gets it.
	if err := os.Setenv("GOMEMLIMIT", w.settings.memoryLimit); err != nil {
		return err
	}
	var flags []string
	if w.settings.pprof != "" {
		flags = append(flags, "--pprof-bind-address="+w.settings.pprof)
	}
	w.manager, err = harness.LaunchManager(w.fleet, w.kubeconfig, flags...)
	return errors.Join(err, os.Unsetenv("GOMEMLIMIT"))
}

// enrol enrols the clusters from one number to another. Each gets a namespace "default".
func (w *world) enrol(ctx context.Context, from, to int) error {
	return each(ctx, to-from, func(ctx context.Context, i int) error {
		name := manyclusters.Name(from + i)
		namespace := apiserver.Manifest("v1", "Namespace", "", manyclusters.Namespace(name, claims.Namespace), nil)
		if err := w.other.Create(ctx, "/api/v1/namespaces", []byte(namespace)); err != nil {
			return err
		}
		kubeconfig, err := w.proxy.Kubeconfig(name)
		if err != nil {
			return err
		}
		secret := fmt.Appendf(nil, `{"metadata":{"name":%q,"labels":{"masthead.dev/enroll":%q}},"data":{"kubeconfig":%q}}`,
			name, claims.ClassName, base64.StdEncoding.EncodeToString(kubeconfig))
		return w.hub.Create(ctx, "/api/v1/namespaces/default/secrets", secret)
	})
}

// leave ends the enrolment of the clusters from one number to another.
func (w *world) leave(ctx context.Context, from, to int) error {
	return each(ctx, to-from, func(ctx context.Context, i int) error {
		return w.hub.Remove(ctx, "/api/v1/namespaces/default/secrets/"+manyclusters.Name(from+i))
	})
}

// createClaims creates claims in the clusters, and waits until all are in the hub.
func (w *world) createClaims(ctx context.Context) error {
	n := w.clusters
	err := each(ctx, n*w.settings.claims, func(ctx context.Context, i int) error {
		in := manyclusters.Namespace(manyclusters.Name(i%n), claims.Namespace)
		return w.other.Create(ctx, w.kind.Collection(in), w.kind.Claim(fmt.Sprintf("claim-%d", i)))
	})
	if err != nil {
		return err
	}
	return w.until(ctx, "the claims are not in the hub", func() (bool, error) {
		var page struct {
			Metadata struct {
				RemainingItemCount int `json:"remainingItemCount"`
			} `json:"metadata"`
			Items []struct{} `json:"items"`
		}
		err := w.hub.Get(ctx, w.kind.Collection(claims.Target)+"?limit=1", &page)
		return len(page.Items)+page.Metadata.RemainingItemCount >= n*w.settings.claims, err
	})
}

// connected waits until the manager watches everything in the first n clusters.
func (w *world) connected(ctx context.Context, n int) error {
	next := 0
	err := w.until(ctx, "the clusters are not connected", func() (bool, error) {
		for next < n && w.proxy.Watches(manyclusters.Name(next)) >= w.watches {
			next++
		}
		return next == n, nil
	})
	if err != nil {
		name := manyclusters.Name(next)
		return fmt.Errorf("%s has %d of %d watches: %w", name, w.proxy.Watches(name), w.watches, err)
	}
	return nil
}

// requests are those until now that are neither watches nor probes, in the clusters and in the hub.
type requests struct{ clusters, hub auditlog.Counts }

func (r requests) count() int { return r.clusters.Count(auditlog.Work) + r.hub.Count(auditlog.Work) }

// settled waits until the manager has sent no such request for some time, and watches do not become more or fewer. It
// returns the requests until then.
func (w *world) settled(ctx context.Context) (r requests, err error) {
	const quiet = 8 * time.Second
	begun, err := w.requests()
	if err != nil {
		return begun, err
	}
	var last [2]int
	since := time.Now()
	err = w.until(ctx, "the manager does not come to rest", func() (bool, error) {
		if r, err = w.requests(); err != nil {
			return false, err
		}
		if now := [2]int{r.count(), w.proxy.Watches(manyclusters.Name(0))}; now != last {
			last, since = now, time.Now()
		}
		return last[1] > 0 && time.Since(since) > quiet, nil
	})
	if err != nil {
		return r, fmt.Errorf("%s: %w", r.since(begun), err)
	}
	return r, nil
}

// requests reads the requests until now.
func (w *world) requests() (requests, error) {
	counts, err := w.tail.Count(user)
	w.atHub.Add(counts)
	return requests{clusters: w.proxy.Requests(), hub: maps.Clone(w.atHub)}, err
}

// since are the requests after others.
func (r requests) since(before requests) requests {
	return requests{clusters: minus(r.clusters, before.clusters), hub: minus(r.hub, before.hub)}
}

func minus(c, before auditlog.Counts) auditlog.Counts {
	rest := auditlog.Counts{}
	for request, n := range c {
		if d := n - before[request]; d != 0 && auditlog.Classify(request) == auditlog.Work {
			rest[request] = d
		}
	}
	return rest
}

func (w *world) until(ctx context.Context, problem string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, w.settings.patience)
	defer cancel()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w\n%s", problem, ctx.Err(), w.manager.LogTail(20))
		case <-w.manager.Exited():
			return fmt.Errorf("%s: the manager has exited\n%s", problem, w.manager.LogTail(20))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func each(ctx context.Context, n int, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}
