// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/masthead-dev/masthead/test/harness"
	"github.com/masthead-dev/masthead/test/localfleet"
)

var _ = Describe("Enrolment", func() {
	It("ends when the label is removed and begins again when it is put back", func(ctx SpecContext) {
		enrolAll(ctx, "w1")
		travels(ctx, "w1", "first-time")
		unenrol(ctx, "w1")
		Eventually(connection).WithArguments(ctx, "w1").WithContext(ctx).Should(BeEmpty())
		Expect(sourceInHub(ctx, "first-time")).NotTo(BeEmpty(), "un-enrolling deletes nothing in the hub")

		claim(ctx, "w1", "unseen")
		enrol(ctx, "w1")
		eventuallyConnected(ctx, "w1")
		travels(ctx, "w1", "unseen")
		travels(ctx, "w1", "second-time")

		By("pausing the Cluster, which holds the enrolment until it ends")
		pause := func(ctx context.Context, paused bool) {
			kubectl(ctx, hub, "patch", "clusters.cluster.x-k8s.io", "w1", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"paused":%t}}`, paused))
		}
		pause(ctx, true)
		DeferCleanup(pause, false)
		Eventually(connection).WithArguments(ctx, "w1").WithContext(ctx).Should(Equal("False/Paused"))
		eventuallySeen(ctx, `masthead_cluster_held{reason="Paused"} == 1`)
		pause(ctx, false)
		eventuallyConnected(ctx, "w1")
	})

	It("follows a Cluster that is deleted and created again under the same name", func(ctx SpecContext) {
		enrolAll(ctx, "w1")
		travels(ctx, "w1", "of-the-first")
		Expect(fleet.Unregister(ctx, localfleet.Registration{Workload: "w1"})).To(Succeed())
		Eventually(connection).WithArguments(ctx, "w1").WithContext(ctx).Should(BeEmpty())
		Expect(fleet.Register(ctx, localfleet.Registration{
			Workload: "w1", Labels: map[string]string{"masthead.dev/enroll": "true"},
		})).To(Succeed())
		eventuallyConnected(ctx, "w1")
		travels(ctx, "w1", "of-the-second")
	})

	It("refuses the same cluster under a second name, and lets it in when the first goes", func(ctx SpecContext) {
		enrolAll(ctx, "w1")
		twin := localfleet.Registration{
			Workload: "w1", Name: "w1-twin", Labels: map[string]string{"masthead.dev/enroll": "true"},
		}
		Expect(fleet.Register(ctx, twin)).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			Expect(fleet.Unregister(ctx, twin)).To(Succeed())
			Eventually(connection).WithArguments(ctx, "w1-twin").WithContext(ctx).Should(BeEmpty())
		})
		Eventually(connection).WithArguments(ctx, "w1-twin").WithContext(ctx).Should(Equal("False/DuplicateCluster"))
		eventuallyConnected(ctx, "w1")

		By("restarting the manager: the same one is refused")
		restartManager(ctx)
		eventuallyConnected(ctx, "w1")
		Eventually(connection).WithArguments(ctx, "w1-twin").WithContext(ctx).Should(Equal("False/DuplicateCluster"))

		unenrol(ctx, "w1")
		eventuallyConnected(ctx, "w1-twin")
		enrol(ctx, "w1")
		Eventually(connection).WithArguments(ctx, "w1").WithContext(ctx).Should(Equal("False/DuplicateCluster"))
		unenrol(ctx, "w1-twin")
		eventuallyConnected(ctx, "w1")
	})

	It("does not need a kind to be there, and reconciles it when its CRD arrives", func(ctx SpecContext) {
		// While the cluster is enrolled, only Masthead can delete the definition.
		DeferCleanup(func(ctx context.Context) {
			removeCopies(ctx, "w1")
			removeDefinition(ctx, "w1", "latecomerrequirements.database.acmeco.org")
		})
		enrolAll(ctx, "w1")
		Expect(get(ctx, "w1", "{.metadata.name}", "crd", "latecomerrequirements.database.acmeco.org")).To(BeEmpty())
		Expect(harness.Apply(ctx, fleet, hub, latecomerRights)).To(Succeed())
		Expect(harness.Apply(ctx, fleet, "w1", latecomerRights)).To(Succeed())
		Expect(harness.Apply(ctx, fleet, hub, latecomer)).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			kubectl(ctx, hub, "delete", "compositeresourcedefinition", "compositelatecomers.database.acmeco.org")
		})
		eventuallyServes(ctx, "w1", "latecomerrequirements.database.acmeco.org")
		Eventually(func() error {
			return harness.Apply(ctx, fleet, "w1", `
apiVersion: database.acmeco.org/v1alpha1
kind: LatecomerRequirement
metadata: {name: late, namespace: default}
spec: {}
`)
		}).WithContext(ctx).Should(Succeed())
		Eventually(func() string {
			return get(ctx, hub, "{.metadata.name}", "latecomerrequirements", "late", "--namespace", "bar")
		}).WithContext(ctx).Should(Equal("late"))
		kubectl(ctx, "w1", "delete", "latecomerrequirements", "late")
		Expect(get(ctx, hub, "{.metadata.name}", "latecomerrequirements", "late", "--namespace", "bar")).To(BeEmpty())
	})

	It("leaves nothing behind after twenty rounds", secondFleet, func(ctx SpecContext) {
		round := func(ctx context.Context) {
			enrol(ctx, "w1", "w2")
			eventuallyConnected(ctx, "w1", "w2")
			eventuallyServesRequirements(ctx, "w1", "w2") // So that there is something that could be left behind.
			unenrol(ctx, "w1", "w2")
			for _, name := range []string{"w1", "w2"} {
				Eventually(connection).WithArguments(ctx, name).WithContext(ctx).Should(BeEmpty())
			}
		}
		round(ctx) // creates the things that are created once and kept
		goroutines := func() float64 { return metrics(ctx).Value("go_goroutines") }
		var base float64
		Eventually(func() float64 {
			last := base
			base = goroutines()
			return base - last
		}).WithContext(ctx).WithPolling(time.Second).Should(BeNumerically("~", 0, 2), "the number of goroutines settles")

		for i := range 20 {
			By(fmt.Sprintf("round %d", i+1))
			round(ctx)
		}
		Eventually(goroutines).WithContext(ctx).Should(BeNumerically("<=", base+5), "twenty leaks would be twenty more")
		Eventually(func() string {
			return strings.Join(metrics(ctx).Series("capi/default/"), "\n")
		}).WithContext(ctx).Should(BeEmpty(), "no series is left of a cluster that is not enrolled")
	})
})

const latecomer = `
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: compositelatecomers.database.acmeco.org}
spec:
  group: database.acmeco.org
  names: {kind: CompositeLatecomer, plural: compositelatecomers}
  claimNames: {kind: LatecomerRequirement, plural: latecomerrequirements}
  versions:
  - name: v1alpha1
    served: true
    referenceable: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}
`

// latecomerRights are for both sides. The hub aggregates ClusterRoles with the first label, and a workload cluster
// those with the second. The other label has no effect there.
const latecomerRights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: latecomer-requirements
  labels:
    rbac.masthead.dev/aggregate-to-requirements: "true"
    rbac.masthead.dev/aggregate-to-workload-requirements: "true"
rules:
- apiGroups: [database.acmeco.org]
  resources: [latecomerrequirements, latecomerrequirements/status]
  verbs: [get, list, watch, create, update, patch, delete]
`
