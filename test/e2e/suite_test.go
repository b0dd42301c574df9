// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func TestEndToEnd(t *testing.T) {
	setUps := map[string]func(context.Context){localProcesses: setUpLocal, kindClusters: setUpKind}
	if setUp = setUps[place()]; setUp == nil {
		t.Fatalf("MASTHEAD_E2E_FLEET is %q: it may be empty or %q", place(), kindClusters)
	}
	RegisterFailHandler(Fail)
	// The log of the fleet's clients belongs to the spec that used them.
	log.SetLogger(GinkgoLogr)
	SetDefaultEventuallyTimeout(5 * time.Minute)
	// The default timeouts also hold where a spec waits with its context.
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	RunSpecs(t, "Masthead end to end, on "+place())
	for _, remark := range remarks {
		t.Log(remark)
	}
	// Last, because those who read only the end of a long output want to know the reason.
	for _, failure := range failures {
		t.Log(failure)
	}
}

// setUp brings up the fleet, with Masthead in it.
var setUp func(context.Context)

var _ = BeforeSuite(func(ctx context.Context) { setUp(ctx) }, NodeTimeout(15*time.Minute))

// managerFlags make the manager notice trouble sooner than in production, so that the specs wait for less. An API
// server that answers slowly because the machine is busy is no trouble.
var managerFlags = []string{
	"--probe-interval=1s",
	"--probe-timeout=5s",
	"--probe-failures=3",
	"--backoff-max=2s",
	// This class exists only while the spec of references runs.
	"--hub-references-class=hub-references",
}

// The cleanup of a spec needs a manager, regardless of what the spec did with it and where it failed. This runs before
// any DeferCleanup.
var _ = AfterEach(func(ctx context.Context) {
	if CurrentSpecReport().State.Is(types.SpecStateSkipped) {
		return
	}
	for _, m := range launched {
		Expect(m.Kill()).To(Succeed())
	}
	launched, replicas = nil, nil
	if !manager.Alive(ctx) {
		startManager(ctx)
		return
	}
	scrape()
})

// The report of a spec that fails has the state of the fleet before any cleanup: the claims, the profiles, and the end
// of the manager's log.
var _ = JustAfterEach(func(ctx context.Context) {
	if CurrentSpecReport().Failed() && manager != nil {
		AddReportEntry("state", stateOfFleet(ctx))
	}
})

// stateOfFleet has a line for each profile and claim, and the last lines of the manager's log.
func stateOfFleet(ctx context.Context) string {
	state := []string{nodeState(ctx, hub, "clusterprofiles")}
	for _, cluster := range append([]string{hub}, workloads...) {
		state = append(state, nodeState(ctx, cluster, "mysqlinstancerequirements"))
	}
	return strings.Join(append(state, manager.LogTail(10)), "")
}

// nodeState has a line for each object of a kind, or says why they cannot be read.
func nodeState(ctx context.Context, cluster, kind string) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second) // Its API server may be what failed.
	defer cancel()
	lines, err := objects.Get(ctx, cluster, `{range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name} uid={.metadata.uid} `+
		`finalizers={.metadata.finalizers} deleted={.metadata.deletionTimestamp}`+
		`{range .status.conditions[*]} {.type}={.status}/{.reason}{end}{"\n"}{end}`, kind, "--all-namespaces")
	if err != nil {
		lines = err.Error() + "\n"
	}
	return cluster + ":\n" + cut(lines)
}

// ReportAfterEach prints the end of the manager's log when a spec failed.
var _ = ReportAfterEach(func(report SpecReport) {
	if report.Failed() && manager != nil {
		GinkgoWriter.Println("the end of the manager's log:\n" + manager.LogTail(60))
	}
})

// startManager starts the manager with flags beside those that all specs share.
func startManager(ctx context.Context, flags ...string) {
	GinkgoHelper()
	Expect(manager.Start(ctx, flags...)).To(Succeed())
	scrape()
}

func restartManager(ctx context.Context) {
	GinkgoHelper()
	Expect(manager.Stop(ctx)).To(Succeed())
	startManager(ctx)
}
