// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/masthead-dev/masthead/test/kindfleet"
)

var _ = Describe("A workload cluster that is cut off", needs(kindClusters, "has a network between its clusters"), func() {
	DescribeTable("is seen to be away while the other one is served, and to be back", func(ctx SpecContext, name, how string) {
		enrolAll(ctx, "w1", "w2")
		travels(ctx, "w1", "before-"+name)
		away := true
		DeferCleanup(func(ctx context.Context) {
			if away {
				Expect(inKind.Reconnect(ctx, "w1", how)).To(Succeed())
			}
		})
		begun := time.Now()
		Expect(inKind.CutOff(ctx, "w1", how)).To(Succeed())
		Eventually(connection).WithArguments(ctx, "w1").WithContext(ctx).ShouldNot(HavePrefix("True/"))
		seen := time.Since(begun)
		travels(ctx, "w2", "beside-"+name)

		begun = time.Now()
		Expect(inKind.Reconnect(ctx, "w1", how)).To(Succeed())
		away = false
		eventuallyConnected(ctx, "w1")
		remarks = append(remarks, fmt.Sprintf("w1 %s: seen after %.0f s, back after %.0f s", name, seen.Seconds(), time.Since(begun).Seconds()))
		travels(ctx, "w1", "after-"+name)
	},
		Entry("without an answer", "dropped", kindfleet.Dropped),
		Entry("by a refusal", "rejected", kindfleet.Rejected),
	)
})
