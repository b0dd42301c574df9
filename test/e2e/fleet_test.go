// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/masthead-dev/masthead/test/harness"
	"github.com/masthead-dev/masthead/test/localfleet"
)

// Fleet is what specs need of a hub and its workload clusters, wherever they run. What only one of the fleets can do is
// asked of local or of inKind, by specs that say that they need it.
type Fleet interface {
	harness.Fleet
	Faults

	// Register makes a Cluster in the hub that leads to a workload cluster, and Unregister deletes it.
	Register(ctx context.Context, r localfleet.Registration) error
	Unregister(ctx context.Context, r localfleet.Registration) error
}

// Faults are what can happen to the API server of a cluster.
type Faults interface {
	// Pause freezes it in the middle of what it does, and Resume goes on with it.
	Pause(ctx context.Context, cluster string) error
	Resume(ctx context.Context, cluster string) error
	// Kill ends it at once, and Restart brings it back at the same address.
	Kill(ctx context.Context, cluster string) error
	Restart(ctx context.Context, cluster string) error
}

// Manager is what specs need of the manager.
type Manager interface {
	Life

	// Metrics is what it publishes; of replicas, what the leader does.
	Metrics(ctx context.Context) (harness.Metrics, error)
	// LogTail is the end of its log.
	LogTail(lines int) string
}

// Life is how the manager begins and ends.
type Life interface {
	// Start starts it with flags beside managerFlags, and returns when it is ready. Launch does not wait for that: it
	// returns when a process runs, whatever that does.
	Start(ctx context.Context, flags ...string) error
	Launch(ctx context.Context) error
	// Stop has it end by itself. Kill ends it at once, as a crash does; in kind, another one is started then.
	Stop(ctx context.Context) error
	Kill(ctx context.Context) error
	// Alive tells whether it runs, in all its replicas.
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
	// objects are those of the fleet, to be read and patched.
	objects *harness.Client
	// workloads are the names of the workload clusters.
	workloads []string
	// kills is how often the manager is killed by the spec that does so again and again, and longestLife how long it is
	// let live at most.
	kills       int
	longestLife time.Duration
)

// needs marks specs that run on one of the fleets only, and says why, without a comma: it is a label.
func needs(place, why string) Labels { return Label("needs " + place + ": " + why) }

// unmet is the mark of a spec that needs another fleet than the one at a place, or "".
func unmet(place string, labels []string) string {
	for _, label := range labels {
		if need, ok := strings.CutPrefix(label, "needs "); ok && !strings.HasPrefix(need, place+": ") {
			return label
		}
	}
	return ""
}

var _ = BeforeEach(func() {
	if why := unmet(place(), CurrentSpecReport().Labels()); why != "" {
		Skip(why)
	}
})
