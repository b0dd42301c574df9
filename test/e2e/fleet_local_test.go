// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/masthead-dev/masthead/test/harness"
	"github.com/masthead-dev/masthead/test/localfleet"
)

// What exists only on local processes, for specs that need it.
var (
	local     *localfleet.Fleet
	asProcess *processManager

	// launched are the managers beside asProcess, which end with the spec. replicas are those of them with the same hub.
	launched, replicas []*harness.Manager
)

// localFleet is a fleet of local processes that implements Fleet.
type localFleet struct{ *localfleet.Fleet }

var _ Fleet = localFleet{}

func (f localFleet) Restart(ctx context.Context, cluster string) error {
	return f.Fleet.Restart(ctx, cluster, localfleet.RestartOptions{})
}

// processManager is the manager as a local process.
type processManager struct {
	// Manager is nil before the first start.
	*harness.Manager

	kubeconfig string
}

var _ Manager = (*processManager)(nil)

func (m *processManager) Launch(ctx context.Context) error { return m.launch(ctx) }

func (m *processManager) launch(ctx context.Context, flags ...string) (err error) {
	if m.kubeconfig == "" {
		if m.kubeconfig, err = harness.ManagerKubeconfig(ctx, local); err != nil {
			return err
		}
	}
	m.Manager, err = harness.LaunchManager(local, m.kubeconfig, append(slices.Clone(managerFlags), flags...)...)
	return err
}

func (m *processManager) Start(ctx context.Context, flags ...string) error {
	if err := m.launch(ctx, flags...); err != nil {
		return err
	}
	if err := m.WaitReady(ctx); err != nil {
		return errors.Join(err, m.Kill(ctx))
	}
	return nil
}

func (m *processManager) Kill(context.Context) error { return m.Manager.Kill() }

func (m *processManager) Alive(context.Context) bool { return m.Manager != nil && m.Manager.Alive() }

// setUpLocal starts a fleet of local processes, with Prometheus beside it, and Masthead.
func setUpLocal(ctx context.Context) {
	GinkgoHelper()
	dir := os.Getenv("MASTHEAD_E2E_DIR") // to read the logs afterwards
	keep := dir != ""
	if !keep {
		dir = GinkgoT().TempDir()
	}
	repository, err := localfleet.Repository()
	Expect(err).NotTo(HaveOccurred())
	monitored := monitoringOptions()
	workloads, kills, longestLife = []string{"w1", "w2", "w3"}, 100, 2*time.Second

	By("starting a hub and three workload clusters")
	local, err = localfleet.Up(ctx, localfleet.Options{
		Dir:            dir,
		Workloads:      workloads,
		Log:            GinkgoWriter,
		WithCrossplane: true,
		WithClusterAPI: true,
		WithKwok:       true,
		WorkloadRBAC: []string{
			filepath.Join(repository, "config", "workload"),
			filepath.Join(repository, "config", "samples", "workload", "claims-rights.yaml"),
			filepath.Join(repository, "config", "samples", "workload", "health-checks-rights.yaml"),
		},
		StopWithParent: true,
		KeepData:       keep,
		Audit:          true, // A spec checks in it that nothing is written to a cluster.
		Fast:           true,
	})
	Expect(err).NotTo(HaveOccurred())
	fleet = localFleet{local}
	objects = harness.NewClient(fleet)
	DeferCleanup(func(ctx context.Context) { Expect(local.Down(ctx)).To(Succeed()) }, NodeTimeout(2*time.Minute))
	DeferCleanup(expectNoHotLoop)

	By("starting Prometheus")
	startPrometheus(ctx, monitored)

	By("installing Masthead")
	Expect(harness.Install(ctx, fleet)).To(Succeed())
	asProcess = &processManager{}
	manager = asProcess
	startManager(ctx)
	DeferCleanup(func(ctx context.Context) {
		Expect(manager.Stop(ctx)).To(Succeed(), "the manager ends by itself when it is sent a signal")
	}, NodeTimeout(time.Minute))
}

// launch starts one more manager, which ends with the spec.
func launch(ctx context.Context, flags ...string) *harness.Manager {
	GinkgoHelper()
	kubeconfig, err := harness.ManagerKubeconfig(ctx, local)
	Expect(err).NotTo(HaveOccurred())
	m, err := harness.LaunchManager(local, kubeconfig, append(slices.Clone(managerFlags), flags...)...)
	Expect(err).NotTo(HaveOccurred())
	launched, replicas = append(launched, m), append(replicas, m)
	scrape()
	return m
}
