// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/hostile"
	"github.com/masthead-dev/masthead/internal/test/liveheap"
	"github.com/masthead-dev/masthead/pkg/providers/connection/connectiontest"
)

// maxHostileHeap is how much one hostile API server may add to the live heap, with all requests to it at once, and with
// the server itself, which is in the same process.
const maxHostileHeap = 128 << 20

// hostileCase is the result of a connection to a hostile API server.
type hostileCase struct {
	state  State
	reason string

	// fails are the names of the requests that must not succeed; see questions.
	fails string
}

// hostileCases has every attack of the library.
func hostileCases() map[string]hostileCase {
	refused := func(reason string) hostileCase { return hostileCase{state: StateBackoff, reason: reason} }
	connected := func(fails string) hostileCase {
		return hostileCase{state: StateConnected, reason: fleetv1alpha1.ReasonConnected, fails: fails}
	}
	return map[string]hostileCase{
		"silent":         refused(fleetv1alpha1.ReasonDialError),
		"slow-handshake": refused(fleetv1alpha1.ReasonDialError),
		"not-tls":        refused(fleetv1alpha1.ReasonTLSError),
		"hang-up":        refused(fleetv1alpha1.ReasonDialError),

		"never-answers":        refused(fleetv1alpha1.ReasonDialError),
		"stops-answering":      refused(fleetv1alpha1.ReasonDialError),
		"huge-headers":         refused(fleetv1alpha1.ReasonDialError),
		"endless-hints":        refused(fleetv1alpha1.ReasonDialError),
		"redirects":            refused(fleetv1alpha1.ReasonAnswerRefused),
		"redirects-lists":      connected("list metadata watch"),
		"redirects-in-circles": connected("list metadata watch"),
		"gzip-garbage":         refused(fleetv1alpha1.ReasonAnswerRefused),
		"gzip-bomb":            connected("list metadata"),
		"drip":                 connected("list metadata discovery write"),
		"truncated":            connected("list metadata"),
		"white-space":          connected("list metadata"),

		"changing-identity": refused(fleetv1alpha1.ReasonClusterIdentityChanged),
		"enormous-identity": refused(fleetv1alpha1.ReasonProbeFailed),
		"endless-probes":    connected(""),

		"endless-list":      connected("list metadata"),
		"empty-elements":    connected("list metadata"),
		"endless-array":     connected("list metadata"),
		"endless-pages":     connected(""),
		"empty-pages":       connected(""),
		"same-page":         connected(""),
		"deep-nesting":      connected("list metadata"),
		"deep-arrays":       connected("list metadata"),
		"changing-objects":  connected(""),
		"backward-versions": connected(""),
		"foreign-items":     connected(""),
		"protobuf-elements": connected("list metadata"),
		"protobuf-garbage":  connected("list metadata watch write"),

		"enormous-string":         connected("list metadata"),
		"enormous-keys":           connected("list metadata"),
		"enormous-annotations":    connected("list metadata"),
		"enormous-managed-fields": connected("list metadata"),
		"malformed":               connected(""),
		"garbled":                 connected(""),

		"endless-events":    connected(""),
		"repeated-events":   connected(""),
		"foreign-events":    connected(""),
		"endless-bookmarks": connected(""),
		"endless-event":     connected(""),
		"event-of-elements": connected(""),
		"deep-events":       connected(""),
		"error-events":      connected(""),
		"ending-watches":    connected(""),
		"malformed-events":  connected(""),
		"silent-streams":    connected(""),
		"endless-streams":   connected(""),

		"endless-discovery": connected("discovery"),
		"many-kinds":        connected("discovery"),
		"deep-discovery":    connected("discovery"),
		"lying-discovery":   connected("discovery"),
		"endless-openapi":   connected("openapi"),

		"retry-after":     connected("list metadata watch discovery write"),
		"retry-at-once":   connected("list metadata watch discovery write"),
		"enormous-errors": connected("list metadata watch discovery write"),
		"endless-errors":  connected("list metadata watch discovery write"),
		"lying-writes":    connected(""),
		"endless-writes":  connected("write"),
	}
}

// TestHostileServers connects to each hostile API server beside an honest one, sends it at once every request that a
// controller could send, and removes it. It checks the reason in its condition, the memory that it took, and what it
// left behind. The test would not come to its end if anything panicked.
func TestHostileServers(t *testing.T) {
	honest, err := hostile.StartHonest(t.Context(), hostile.NewHonest())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(honest.Close)
	src := newFakeSource()
	h := newHarness(t, src, func(o *Options) {
		o.ProbeTimeout, o.RequestTimeout = 3*time.Second, 2*time.Second
	})
	src.set("honest", honest.Kubeconfig())
	h.waitFor(t, "honest", StateConnected, fleetv1alpha1.ReasonConnected)
	settle(t)
	goroutines := runtime.NumGoroutine()

	cases := hostileCases()
	for _, attack := range hostile.Attacks() {
		tc, known := cases[attack.Name]
		if !known {
			t.Errorf("it is not known what becomes of %s", attack.Name)
			continue
		}
		t.Run(attack.Name, func(t *testing.T) {
			server, err := hostile.Start(t.Context(), attack, hostile.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			heap := liveheap.Watch(t)
			src.set(attack.Name, server.Kubeconfig())
			defer func() {
				src.remove(attack.Name)
				connectiontest.Eventually(t, "the cluster is gone", func() bool { _, there := h.Lookup(clusterName(attack.Name)); return !there })
			}()
			if attack.Connects {
				h.waitFor(t, attack.Name, StateConnected, fleetv1alpha1.ReasonConnected)
				h.askAll(t, attack.Name, tc)
			}
			h.waitFor(t, attack.Name, tc.state, tc.reason)
			if got := heap(); got > maxHostileHeap {
				t.Errorf("%s: the live heap grew by %d MiB", attack.Harm, got>>20)
			}
			if n := server.Trapped(); n > 0 {
				t.Errorf("%d requests went to where the server redirects", n)
			}
			if state, reason := h.state("honest"); state != StateConnected && reason != fleetv1alpha1.ReasonDialError { // A busy machine may be late.
				t.Errorf("the cluster beside it is %s: %s", state, reason)
			}
		})
	}
	h.waitFor(t, "honest", StateConnected, fleetv1alpha1.ReasonConnected)
	connectiontest.Eventually(t, "goroutines are back at the base line", func() bool { return runtime.NumGoroutine() <= goroutines },
		func() any { return fmt.Sprintf("%d, not %d\n%s", runtime.NumGoroutine(), goroutines, stacks()) })
}

// askAll sends all requests to a cluster at once. Every request comes to an end.
func (h *harness) askAll(t *testing.T, name string, tc hostileCase) {
	t.Helper()
	cl, err := h.Get(t.Context(), clusterName(name))
	if err != nil && tc.state == StateConnected {
		t.Fatal(err)
	}
	if err != nil {
		return // It is gone by now, as it should be.
	}
	type answer struct {
		question string
		err      error
	}
	questions := questions()
	answers := make(chan answer, len(questions))
	for question, ask := range questions {
		go func() { answers <- answer{question, ask(t.Context(), cl.(Connected))} }()
	}
	for range questions {
		a := <-answers
		if strings.Contains(tc.fails, a.question) && a.err == nil {
			t.Errorf("%s was answered", a.question)
		}
		if a.err != nil && len(a.err.Error()) > 64<<10 {
			t.Errorf("the error of %s has %d bytes", a.question, len(a.err.Error()))
		}
	}
}

// questions are the requests that controllers send to a cluster.
func questions() map[string]func(context.Context, Connected) error {
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	return map[string]func(context.Context, Connected) error{
		"list": func(ctx context.Context, c Connected) error {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			_, err := c.Dynamic().Resource(namespaces).List(ctx, metav1.ListOptions{Limit: 500})
			return err
		},
		"metadata": func(ctx context.Context, c Connected) error {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "SecretList"})
			return c.GetAPIReader().List(ctx, list, client.Limit(500))
		},
		// A watch is followed for a while. That it ends by itself, or brings nothing, is no error.
		"watch": func(ctx context.Context, c Connected) error {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			for range 12 { // Enough for a server that waits for a client to settle to consider us settled.
				w, err := c.Dynamic().Resource(namespaces).Watch(ctx, metav1.ListOptions{ResourceVersion: "1"})
				if err != nil {
					return err
				}
				defer w.Stop()
				for range 1000 {
					select {
					case _, more := <-w.ResultChan():
						if more {
							continue
						}
					case <-time.After(50 * time.Millisecond):
					}
					break
				}
			}
			return nil
		},
		"discovery": func(_ context.Context, c Connected) error {
			_, err := c.GetRESTMapper().RESTMapping(schema.GroupKind{Group: "example.org", Kind: "Missing"}, "v1")
			_, serves := c.GetRESTMapper().RESTMapping(schema.GroupKind{Kind: "ConfigMap"}, "v1")
			if serves == nil {
				return nil
			}
			return fmt.Errorf("%w, %w", err, serves)
		},
		"openapi": func(_ context.Context, c Connected) error {
			d, err := discovery.NewDiscoveryClientForConfigAndClient(c.GetConfig(), c.GetHTTPClient())
			if err != nil {
				return err
			}
			_, second := d.OpenAPISchema()
			_, third := d.OpenAPIV3().Paths()
			if second == nil || third == nil {
				return nil
			}
			return fmt.Errorf("%w, %w", second, third)
		},
		"write": func(ctx context.Context, c Connected) error {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			u := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "default"},
			}}
			_, err := c.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default").
				Create(ctx, u, metav1.CreateOptions{})
			return err
		},
	}
}
