// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/masthead-dev/masthead/internal/test/hostile"
	"github.com/masthead-dev/masthead/test/bench/process"
	"github.com/masthead-dev/masthead/test/harness"
)

// shippedMemoryLimit is the memory limit in config/manager/deployment.yaml, and hostileMemory how much more memory than
// before the manager may use because of all attacks together, in bytes. make bench-hostile measures about 250 MiB; that
// figure does not include the race detector and a busy machine.
const (
	shippedMemoryLimit = 1 << 30
	hostileMemory      = 400 << 20
)

// enrolHostile starts a hostile API server and enrols it by a Secret.
func enrolHostile(ctx context.Context, name string) *hostile.Server {
	GinkgoHelper()
	attack, known := hostile.Named(name)
	Expect(known).To(BeTrue(), "there is an attack %q", name)
	server, err := hostile.Start(ctx, attack, hostile.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Close)
	Expect(harness.Apply(ctx, fleet, hub, fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata:
  name: %s
  namespace: default
  labels: {masthead.dev/enroll: "true"}
data: {kubeconfig: %s}
`, hostileName(name), base64.StdEncoding.EncodeToString(server.Kubeconfig())))).To(Succeed())
	return server
}

func hostileName(attack string) string { return "hostile-" + attack }

// hostileConditions are the conditions of a hostile cluster's profile, a line each: "type=status/reason message".
func hostileConditions(ctx context.Context, attack string) string {
	GinkgoHelper()
	return get(ctx, hub, `{range .status.conditions[*]}{.type}={.status}/{.reason} {.message}{"\n"}{end}`, "clusterprofiles", "kubeconfig-"+hostileName(attack))
}

// saysWhy is what the profile of a hostile cluster reports eventually, as a regular expression, by attack. There are
// two attacks of nearly every kind; all attacks are tested in pkg/providers/connection and pkg/kindwatch, and by make
// bench-hostile.
func saysWhy() map[string]string {
	const (
		unreachable = `Connected=False/DialError`
		refused     = `WithinLimits=False/AnswerRefused`
		// The causes are in the message, by kind.
		unfinished = `KindsSynced=False/.*\(ListUnfinished\)`
		failing    = `KindsSynced=False/.*\(WatchFailing\)`
	)
	return map[string]string{
		"silent":            unreachable,
		"never-answers":     unreachable,
		"huge-headers":      unreachable,
		"redirects":         `Connected=False/AnswerRefused`,
		"changing-identity": `Connected=False/ClusterIdentityChanged`,

		"empty-elements":    refused,
		"deep-nesting":      refused,
		"gzip-bomb":         refused,
		"protobuf-elements": refused,
		"event-of-elements": refused,
		"endless-discovery": refused,

		"drip":             unfinished,
		"silent-streams":   unfinished,
		"truncated":        `KindsSynced=False/.*\(List(Truncated|Failed)\)`,
		"malformed-events": failing,
		"ending-watches":   failing,
		"error-events":     `(KindsSynced|WithinLimits)=False/AnswerRefused`,
		"retry-at-once":    `KindsSynced=False/.*\(List(Unfinished|Rejected)\)`,
		"endless-pages":    `KindsSynced=False/.*\((ListUnfinished|TooLarge)\)|WithinLimits=False/MemoryShareExceeded`,
		"endless-events":   `KindsSynced=False/.*\((TooLarge|WatchFailing)\)|WithinLimits=False/(MemoryShareExceeded|EventsDelayed)`,
		// These only send events too often.
		"repeated-events":   `WithinLimits=False/EventsDelayed`,
		"endless-bookmarks": `WithinLimits=False/EventsDelayed`,
	}
}

var _ = Describe("A fleet with hostile API servers", needs(localProcesses, "has servers where no Pod can reach them"), func() {
	It("carries the claims of honest clusters, says what is wrong with the others, and is as before when they are gone", func(ctx SpecContext) {
		// Half of them are reported when a kind has not been synced for this long; the default would be two minutes. One
		// answers page after page when the manager looks for what is left in it; by default that would last five minutes.
		Expect(manager.Stop(ctx)).To(Succeed())
		startManager(ctx, "--unsynced-after=20s", "--offboard-timeout=20s")
		DeferCleanup(restartManager)
		enrolAll(ctx, "w1", "w2")
		travels(ctx, "w1", "before-hostile")
		goroutines, descriptors := metrics(ctx).Value("go_goroutines"), metrics(ctx).Value("process_open_fds")

		before, err := process.ReadUsage(asProcess.PID())
		Expect(err).NotTo(HaveOccurred())

		reasons := saysWhy()
		attacks := slices.Sorted(maps.Keys(reasons))
		secrets := make([]string, 0, len(attacks))
		for _, attack := range attacks {
			secrets = append(secrets, hostileName(attack))
		}
		DeferCleanup(func(ctx context.Context) {
			kubectl(ctx, hub, append([]string{"delete", "secret", "--ignore-not-found"}, secrets...)...)
		})
		servers := map[string]*hostile.Server{}
		for _, attack := range attacks {
			servers[attack] = enrolHostile(ctx, attack)
		}
		travels(ctx, "w1", "beside-hostile-w1")
		travels(ctx, "w2", "beside-hostile-w2")

		By("waiting for what each of them comes to")
		// A condition may change later, for example when something that was refused long ago is requested again.
		said := map[string]string{}
		Eventually(func() (silent []string) {
			for _, attack := range attacks {
				if said[attack] != "" {
					continue
				}
				conditions := hostileConditions(ctx, attack)
				if regexp.MustCompile(reasons[attack]).MatchString(conditions) {
					said[attack] = conditions
					GinkgoWriter.Printf("%s:\n%s\n", attack, conditions)
				} else {
					silent = append(silent, attack+":\n"+conditions)
				}
			}
			return silent
		}).WithContext(ctx).WithPolling(time.Second).Should(BeEmpty(), "each hostile cluster has a condition that says why")
		travels(ctx, "w1", "among-hostile-w1")
		travels(ctx, "w2", "among-hostile-w2")
		eventuallyConnected(ctx, "w1", "w2")
		Expect(manager.Alive(ctx)).To(BeTrue())
		Expect(metrics(ctx).Value("masthead_panics_total")).To(BeZero(), "nothing panicked")
		used, err := process.ReadUsage(asProcess.PID())
		Expect(err).NotTo(HaveOccurred())
		Expect(used.Peak).To(BeNumerically("<", shippedMemoryLimit), "it would have been killed")
		Expect(used.Peak).To(BeNumerically("<", before.Peak+hostileMemory), "hostile clusters took more than they are given")
		for name, s := range servers {
			Expect(s.Trapped()).To(BeZero(), "%s has sent the manager somewhere", name)
		}

		By("un-enrolling them")
		published := func() float64 {
			return metrics(ctx).Value("controller_runtime_reconcile_total", "controller", "inventory")
		}
		reconciles := published()
		kubectl(ctx, hub, append([]string{"delete", "secret"}, secrets...)...)
		for _, attack := range attacks {
			Eventually(hostileConditions).WithArguments(ctx, attack).WithContext(ctx).Should(BeEmpty(), "no profile is left of %s", attack)
		}
		// A profile that is created for a deleted Secret is garbage-collected at once. It used to be created again some fifty
		// times a second.
		Expect(published()-reconciles).To(BeNumerically("<", 30*len(attacks)), "profiles were made again and again while clusters were left")
		Eventually(func() []string { return metrics(ctx).Series("hostile-") }).WithContext(ctx).Should(BeEmpty(), "no series is left")
		for name, s := range servers {
			Eventually(s.Connections).WithContext(ctx).Should(BeZero(), "%s has no connection any more", name)
		}
		Eventually(func() float64 { return metrics(ctx).Value("go_goroutines") }).WithContext(ctx).
			Should(BeNumerically("<=", goroutines+10), "no goroutine is left but for those of requests to the hub")
		Eventually(func() float64 { return metrics(ctx).Value("process_open_fds") }).WithContext(ctx).
			Should(BeNumerically("<=", descriptors+5), "no connection is left but for those to the hub")
		travels(ctx, "w2", "after-hostile")
	})
})
