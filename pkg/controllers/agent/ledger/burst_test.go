// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

func TestPatienceInABurst(t *testing.T) {
	const usually = 2 * time.Second
	for name, tc := range map[string]struct {
		reason    string
		creations int
		apart     time.Duration
		clusters  int
		after     time.Duration
		want      time.Duration
	}{
		"Nothing": {reason: "Where nothing is created, a condition does not wait longer than usual.", want: usually},
		"Few":     {reason: "A few claims at once are no burst.", creations: burstSize - 1, want: usually},
		"Many":    {reason: "Many at once are.", creations: burstSize, want: burstPatience},
		"Slow":    {reason: "Nor are many one after another.", creations: 10 * burstSize, apart: 100 * time.Millisecond, want: usually},
		"Fast":    {reason: "A steady high rate is.", creations: 10 * burstSize, apart: 10 * time.Millisecond, want: burstPatience},
		"Stalled": {reason: "A hub that stalls for a moment has not become idle.", creations: 100, after: 3 * burstWindow, want: burstPatience},
		"Over":    {reason: "It is over when nothing has happened for a while.", creations: 100, after: BurstLinger, want: usually},
		"Spread": {
			reason: "It is the fleet that creates many, and each cluster its part.", creations: 200, clusters: 20, apart: 10 * time.Millisecond, want: burstPatience,
		},
		"SpreadThin": {
			reason: "A cluster that has no part in it does not wait.", creations: 1800, clusters: 600, apart: 10 * time.Millisecond, want: usually,
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := clocktesting.NewFakePassiveClock(time.Now())
			b := NewBursts(now)
			for i := range tc.creations {
				b.Sign(mcr.ClusterName(fmt.Sprintf("w%d", 1+i%max(1, tc.clusters))))
				now.SetTime(now.Now().Add(tc.apart))
			}
			now.SetTime(now.Now().Add(tc.after))
			if got := b.Patience("w1", usually); got != tc.want {
				t.Errorf("%s want %s, got %s", tc.reason, tc.want, got)
			}
			if got := b.Patience("bystander", usually); got != usually {
				t.Errorf("want another cluster not to wait, got %s", got)
			}
			b.Forget("w1")
			if got := b.Patience("w1", usually); got != usually || b.clusters["w1"] != nil {
				t.Errorf("want nothing left of a cluster that is gone, got %s", got)
			}
		})
	}
}
