// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/providers/connection/connectiontest"
)

// degraded returns an offboarder of a connected cluster whose probes fail from then on. answer, if set, answers its
// other requests.
func degraded(t *testing.T, answer func(w http.ResponseWriter, r *http.Request) bool) (*offboarder, *fakeSource) {
	t.Helper()
	s := realServer(t, 0)
	f := newFrontend(t, s)
	src := newFakeSource()
	l := newOffboarder(t, src, func(o *Options) { o.ProbeFailureThreshold = 1 << 20 })
	src.set("a", f.kubeconfig(t, s.token(t)))
	l.h.waitFor(t, "a", StateConnected, "")
	f.setAnswer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/readyz" {
			panic(http.ErrAbortHandler) // Any answer would show that the cluster can be reached.
		}
		return answer != nil && answer(w, r)
	})
	connectiontest.Eventually(t, "it is degraded", func() bool {
		state, _ := l.h.state("a")
		return state == StateDegraded
	})
	return l, src
}

// TestLeaveOfADegradedClusterCanWrite un-enrols a cluster whose last probe failed, but which works otherwise.
func TestLeaveOfADegradedClusterCanWrite(t *testing.T) {
	l, src := degraded(t, nil)
	src.remove("a")
	connectiontest.Eventually(t, "it is being offboarded, and the cluster can be written to", func() bool { return l.wrote.Load() == 1 })
	close(l.proceed)
	connectiontest.Eventually(t, "it is gone", func() bool { _, ok := l.h.Lookup(clusterName("a")); return !ok })
}

// TestLeaveOfADegradedClusterIsNotTakenBlindly un-enrols a cluster whose probes fail, and which does not confirm that
// it is the same cluster.
func TestLeaveOfADegradedClusterIsNotTakenBlindly(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		says   func(http.ResponseWriter)
	}{
		"Nothing": {"A cluster that does not answer would be waited for in vain.", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }},
		"Another": {"Another cluster has nothing of what would be undone.", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"11111111-2222-4333-8444-555555555555"}}`))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l, src := degraded(t, func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/api/v1/namespaces/kube-system" {
					return false
				}
				tc.says(w)
				return true
			})
			src.remove("a")
			connectiontest.Eventually(t, "it is gone", func() bool { _, ok := l.h.Lookup(clusterName("a")); return !ok })
			if got := l.called.Load(); got != 0 {
				t.Errorf("%s want it not to be offboarded, got %d", tc.reason, got)
			}
		})
	}
}

func TestLeaveIsTakenAgainAFewTimesWhileItFails(t *testing.T) {
	for name, tc := range map[string]struct {
		reason      string
		fails, want int32
	}{
		"Once":   {reason: "A failure that passes leaves nothing behind.", fails: 1, want: 2},
		"Never":  {reason: "One that succeeds is called once.", fails: 0, want: 1},
		"Always": {reason: "A cluster that always fails is given up.", fails: offboardAttempts, want: offboardAttempts},
	} {
		t.Run(name, func(t *testing.T) {
			s := realServer(t, 0)
			f := newFrontend(t, s)
			src := newFakeSource()
			var called atomic.Int32
			h := newHarnessWith(t, src, func(p *Provider) {
				p.OnOffboard(func(context.Context, mcr.ClusterName) error {
					if called.Add(1) <= tc.fails {
						return fmt.Errorf("cannot write: %w", apierrors.NewTooManyRequests("busy", 1))
					}
					return nil
				})
			})
			src.set("a", f.kubeconfig(t, s.token(t)))
			h.waitFor(t, "a", StateConnected, "")
			src.remove("a")
			connectiontest.Eventually(t, "it is gone", func() bool { _, ok := h.Lookup(clusterName("a")); return !ok })
			if got := called.Load(); got != tc.want {
				t.Errorf("%s want %d calls, got %d", tc.reason, tc.want, got)
			}
		})
	}
}
