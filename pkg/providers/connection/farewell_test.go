// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// TestLeaveOfADegradedClusterCanWrite un-enrols a cluster whose last probe failed and which works otherwise.
func TestLeaveOfADegradedClusterCanWrite(t *testing.T) {
	s := realServer(t, 0)
	f := newFrontend(t, s)
	src := newFakeSource()
	l := newLeaver(t, src, func(o *Options) { o.ProbeFailureThreshold = 1 << 20 })
	src.set("a", f.kubeconfig(t, s.token(t)))
	l.h.waitFor(t, "a", StateConnected, "")
	f.setAnswer(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/readyz" {
			panic(http.ErrAbortHandler) // Whatever is answered would show that the cluster can be reached.
		}
		return false
	})
	eventually(t, "it is degraded", func() bool {
		state, _ := l.h.state("a")
		return state == StateDegraded
	})

	src.remove("a")
	eventually(t, "leave is taken, and the cluster can be written to", func() bool { return l.wrote.Load() == 1 })
	close(l.proceed)
	eventually(t, "it is gone", func() bool { _, ok := l.h.Lookup(clusterName("a")); return !ok })
}

func TestLeaveIsTakenAgainAFewTimesWhileItFails(t *testing.T) {
	for name, tc := range map[string]struct {
		reason      string
		fails, want int32
	}{
		"Once":   {reason: "A failure that passes leaves nothing behind.", fails: 1, want: 2},
		"Always": {reason: "A cluster that always fails is given up.", fails: leaveAttempts, want: leaveAttempts},
	} {
		t.Run(name, func(t *testing.T) {
			s := realServer(t, 0)
			f := newFrontend(t, s)
			src := newFakeSource()
			var called atomic.Int32
			h := newHarnessWith(t, src, func(p *Provider) {
				p.OnLeave(func(context.Context, mcr.ClusterName) error {
					if called.Add(1) <= tc.fails {
						return errors.New("the API server is busy")
					}
					return nil
				})
			})
			src.set("a", f.kubeconfig(t, s.token(t)))
			h.waitFor(t, "a", StateConnected, "")
			src.remove("a")
			eventually(t, "it is gone", func() bool { _, ok := h.Lookup(clusterName("a")); return !ok })
			if got := called.Load(); got != tc.want {
				t.Errorf("%s want %d calls, got %d", tc.reason, tc.want, got)
			}
		})
	}
}
