// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection/connectiontest"
)

// TestForbiddenIsAFailedProbe has an API server that answers 403 for two probes, as one that was just started does.
func TestForbiddenIsAFailedProbe(t *testing.T) {
	for name, path := range map[string]string{
		"Identity": "/api/v1/namespaces/" + metav1.NamespaceSystem, "Marker": "/customresourcedefinitions/hubs.masthead.dev",
	} {
		t.Run(name, func(t *testing.T) {
			src := newFakeSource()
			h := newHarness(t, src, func(o *Options) {
				o.ProbeFailureThreshold = 1000
				o.Hub, o.HubInterval = hubidentity.Hub{ID: "me", Name: "hub"}, 10*time.Millisecond
			})
			f := markedServer(t)
			src.set("a", f.kubeconfig(t, "token"))
			h.waitFor(t, "a", StateConnected, fleetv1alpha1.ReasonConnected)
			cl, err := h.Get(t.Context(), clusterName("a"))
			if err != nil {
				t.Fatal(err)
			}
			marked := f.answer
			var refused atomic.Int32
			f.setAnswer(func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasSuffix(r.URL.Path, path) {
					refused.Add(1)
					w.WriteHeader(http.StatusForbidden)
					return true
				}
				return marked(w, r)
			})
			f.CloseClientConnections() // It was restarted.
			h.waitFor(t, "a", StateDegraded, fleetv1alpha1.ReasonForbidden)
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-", Namespace: "default"}}
			if err := cl.GetClient().Create(t.Context(), account); !errors.Is(err, multicluster.ErrClusterNotConnected) {
				t.Errorf("want writes to stop at once, got %v", err)
			}
			connectiontest.Eventually(t, "two probes failed", func() bool { return refused.Load() >= 2 })
			f.setAnswer(marked)
			h.waitFor(t, "a", StateConnected, fleetv1alpha1.ReasonConnected)
			if n := len(h.engagements("a")); n != 1 {
				t.Errorf("want the connection to go on, got %d engagements", n)
			}
		})
	}
}

// TestProbeHasADeadlineAsAWhole has an API server that answers each request of a probe just before its time-out.
func TestProbeHasADeadlineAsAWhole(t *testing.T) {
	const timeout = 200 * time.Millisecond
	var (
		mu     sync.Mutex
		slow   bool
		first  time.Time // the deadline of the first request of the current probe
		probes int
		late   []string
	)
	src := newFakeSource()
	h := newHarness(t, src, func(o *Options) {
		o.ProbeTimeout, o.ProbeFailureThreshold = timeout, 1000
		o.Hub, o.HubInterval = hubidentity.Hub{ID: "me", Name: "hub"}, 10*time.Millisecond
		o.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
			return sender(func(r *http.Request) (*http.Response, error) {
				mu.Lock()
				deadline, _ := r.Context().Deadline()
				switch {
				case !slow || r.URL.Path == "/api/v1" || r.URL.Query().Has("watch") || strings.HasSuffix(r.URL.Path, "/serviceaccounts"):
				case r.URL.Path == "/readyz":
					first = deadline
					probes++
				case deadline.After(first.Add(timeout)):
					late = append(late, r.URL.Path)
				}
				mu.Unlock()
				return next.RoundTrip(r)
			})
		}
	})
	f := markedServer(t)
	src.set("a", f.kubeconfig(t, "token"))
	h.waitFor(t, "a", StateConnected, fleetv1alpha1.ReasonConnected)
	marked := f.answer
	f.setAnswer(func(w http.ResponseWriter, r *http.Request) bool {
		select {
		case <-time.After(timeout * 3 / 4):
		case <-r.Context().Done():
		}
		return marked(w, r)
	})
	f.CloseClientConnections()
	mu.Lock()
	slow = true
	mu.Unlock()
	connectiontest.Eventually(t, "some probes were made", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return probes > 5
	})
	mu.Lock()
	defer mu.Unlock()
	if len(late) > 0 {
		t.Errorf("want no request to last longer than two time-outs since its probe began, got %q", late)
	}
}
