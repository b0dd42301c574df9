// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/masthead-dev/masthead/test/harness"
	"github.com/masthead-dev/masthead/test/localfleet"
)

func TestEndToEnd(t *testing.T) {
	RegisterFailHandler(Fail)
	// What the fleet's clients log belongs to the spec that made them do so.
	log.SetLogger(GinkgoLogr)
	SetDefaultEventuallyTimeout(5 * time.Minute)
	// A spec that waits with its context waits no longer than any other.
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	RunSpecs(t, "Masthead end to end")
	// Last, because whoever reads only the end of a long output wants to know why.
	for _, failure := range failures {
		t.Log(failure)
	}
}

// failures are the specs that failed, each with its reason and the place, in the order in which they ran.
var failures []string

var _ = ReportAfterSuite("what failed", func(report Report) {
	for _, spec := range report.SpecReports {
		if !spec.Failed() {
			continue
		}
		failures = append(failures, failureText(spec, spec.Failure))
		for _, later := range spec.AdditionalFailures {
			failures = append(failures, failureText(spec, later.Failure))
		}
	}
})

func failureText(spec SpecReport, f types.Failure) string {
	const longest = 1500 // bytes
	message := f.Message
	if len(message) > longest {
		message = message[:longest] + " [...]"
	}
	return fmt.Sprintf("%s, at %s:%d\n%s", spec.FullText(), filepath.Base(f.Location.FileName), f.Location.LineNumber, message)
}

// What all specs share. The specs run one after the other, and each leaves no cluster enrolled.
var (
	fleet   *localfleet.Fleet
	manager *harness.Manager

	// launched are the managers beside it, which end with the spec.
	launched []*harness.Manager
)

// managerFlags make the manager notice trouble sooner than in production, so that the specs wait for less. An API
// server that is slow to answer because the machine is busy is no trouble.
var managerFlags = []string{
	"--probe-interval=1s",
	"--probe-timeout=5s",
	"--probe-failures=3",
	"--backoff-max=2s",
	// There is such a class only while the spec of references runs.
	"--hub-references-class=hub-references",
}

var _ = BeforeSuite(func(ctx context.Context) {
	dir := os.Getenv("MASTHEAD_E2E_DIR") // to look at the logs afterwards
	keep := dir != ""
	if !keep {
		dir = GinkgoT().TempDir()
	}
	repository, err := localfleet.Repository()
	Expect(err).NotTo(HaveOccurred())

	By("starting a hub and three workload clusters")
	fleet, err = localfleet.Up(ctx, localfleet.Options{
		Dir:            dir,
		Workloads:      []string{"w1", "w2", "w3"},
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
		Audit:          keep,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) { Expect(fleet.Down(ctx)).To(Succeed()) }, NodeTimeout(2*time.Minute))

	By("installing Masthead")
	Expect(harness.Install(ctx, fleet)).To(Succeed())
	startManager(ctx)
	DeferCleanup(func(ctx context.Context) {
		Expect(manager.Stop(ctx)).To(Succeed(), "the manager ends by itself when it is asked to")
	}, NodeTimeout(time.Minute))
}, NodeTimeout(10*time.Minute))

// What a spec cleans up needs a manager, whatever the spec did with it and wherever it failed. This comes before any
// DeferCleanup.
var _ = AfterEach(func(ctx context.Context) {
	for _, m := range launched {
		Expect(m.Kill()).To(Succeed())
	}
	launched = nil
	if manager == nil || !manager.Alive() {
		startManager(ctx)
	}
})

// ReportAfterEach shows what the manager said when a spec failed.
var _ = ReportAfterEach(func(report SpecReport) {
	if report.Failed() && manager != nil {
		GinkgoWriter.Println("the end of the manager's log:\n" + manager.LogTail(60))
	}
})

func startManager(ctx context.Context) {
	GinkgoHelper()
	startManagerWith(ctx)
}

// startManagerWith starts the manager with further flags.
func startManagerWith(ctx context.Context, flags ...string) {
	GinkgoHelper()
	var err error
	manager, err = harness.StartManager(ctx, fleet, append(slices.Clone(managerFlags), flags...)...)
	Expect(err).NotTo(HaveOccurred())
}

func restartManager(ctx context.Context) {
	GinkgoHelper()
	Expect(manager.Stop(ctx)).To(Succeed())
	startManager(ctx)
}
