// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/masthead-dev/masthead/test/harness"
	"github.com/masthead-dev/masthead/test/localfleet"
)

// Fleet is what specs need of a hub and its workload clusters, wherever they run. Specs that need what only one of the
// fleets can do declare that, and use local or inKind.
type Fleet interface {
	harness.Fleet
	Faults

	// Register creates a Cluster in the hub for a workload cluster, and Unregister deletes it.
	Register(ctx context.Context, r localfleet.Registration) error
	Unregister(ctx context.Context, r localfleet.Registration) error
}

// Faults are the faults that specs cause in the API server of a cluster.
type Faults interface {
	// Pause freezes it in the middle of its work, and Resume continues it.
	Pause(ctx context.Context, cluster string) error
	Resume(ctx context.Context, cluster string) error
	// Kill ends it at once, and Restart brings it back at the same address.
	Kill(ctx context.Context, cluster string) error
	Restart(ctx context.Context, cluster string) error
}

// Manager is what specs need of the manager.
type Manager interface {
	Life

	// Metrics are the metrics that it publishes; with several replicas, those of the leader.
	Metrics(ctx context.Context) (harness.Metrics, error)
	// LogTail is the end of its log.
	LogTail(lines int) string
}

// Life starts and ends the manager.
type Life interface {
	// Start starts it with flags beside managerFlags, and returns when it is ready. Launch does not wait for that: it
	// returns when a process runs, regardless of what the process does.
	Start(ctx context.Context, flags ...string) error
	Launch(ctx context.Context) error
	// Stop asks it to end, and waits until it has ended. Kill ends it at once, as a crash does; in kind, another one is
	// started then.
	Stop(ctx context.Context) error
	Kill(ctx context.Context) error
	// Alive reports whether all its replicas run.
	Alive(ctx context.Context) bool
}

// The fleets on which the suite can run.
const (
	localProcesses = "local processes"
	kindClusters   = "kind"
)

// place is the fleet on which the suite runs: local processes, unless the environment says kind.
func place() string { return cmp.Or(os.Getenv("MASTHEAD_E2E_FLEET"), localProcesses) }

// What all specs share. The specs run one after the other, and each leaves no cluster enrolled.
var (
	fleet   Fleet
	manager Manager
	// objects reads and patches the objects of the fleet.
	objects *harness.Client
	// workloads are the names of the workload clusters.
	workloads []string
	// kills is how often the manager is killed by the spec that kills it repeatedly, and longestLife the longest time
	// before it is killed.
	kills       int
	longestLife time.Duration
)

// needs marks specs that run on one of the fleets only, with the reason. The reason has no comma, because it is part of
// a label.
func needs(place, why string) Labels { return Label("needs " + place + ": " + why) }

// unmet returns the label of a spec that needs a fleet other than the one at place, or "".
func unmet(place string, labels []string) string {
	for _, label := range labels {
		if need, ok := strings.CutPrefix(label, "needs "); ok && !strings.HasPrefix(need, place+": ") {
			return label
		}
	}
	return ""
}

// secondFleet marks the specs that run in a second fleet. On local processes the suite runs as two processes side by
// side, each with a fleet of its own and with about half of the time. What the dashboards query is to happen in the
// first one: a spec belongs there if its panels have no data otherwise.
var secondFleet = Label("second-fleet")

// The filters by which hack/test.sh divides the specs.
const (
	inFirstFleet  = "!second-fleet"
	inSecondFleet = "second-fleet"
)

// runsInOther reports whether a spec with these labels runs in the other one of two fleets. With any other filter there
// is one fleet.
func runsInOther(labelFilter string, labels []string) bool {
	apart := slices.Contains(labels, secondFleet[0])
	return labelFilter == inFirstFleet && apart || labelFilter == inSecondFleet && !apart
}

var _ = BeforeEach(func() {
	if why := unmet(place(), CurrentSpecReport().Labels()); why != "" {
		Skip(why)
	}
})
