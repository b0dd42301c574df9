// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/masthead-dev/masthead/internal/test/hostile"
	"github.com/masthead-dev/masthead/internal/test/liveheap"
	"github.com/masthead-dev/masthead/pkg/limits"
)

// maxHostileHeap is what the watches of one hostile API server may add to the live heap, with the server itself.
const maxHostileHeap = 96 << 20

// hostileStates are the states in which a kind of a hostile API server may come to stay, by attack. Syncing is with a
// message, unless the API server hangs. Attacks that are not here do not get as far as a watch.
func hostileStates() map[string][]State {
	synced, syncing, tooLarge := []State{StateSynced}, []State{StateSyncing}, []State{StateTooLarge}
	refused := []State{StateSyncing, StateTooLarge}
	either := []State{StateSynced, StateSyncing, StateTooLarge}
	return map[string][]State{
		"stops-answering":      either,
		"redirects-lists":      refused,
		"redirects-in-circles": refused,
		"gzip-bomb":            refused,
		"drip":                 syncing,
		"truncated":            syncing,
		"white-space":          refused,

		"changing-identity": synced,
		"endless-probes":    synced,

		"endless-list":      refused,
		"empty-elements":    refused,
		"endless-array":     refused,
		"endless-pages":     tooLarge,
		"empty-pages":       tooLarge,
		"same-page":         tooLarge,
		"deep-nesting":      refused,
		"deep-arrays":       refused,
		"changing-objects":  synced,
		"backward-versions": synced,
		"foreign-items":     synced,
		"protobuf-elements": refused,
		"protobuf-garbage":  refused,

		"enormous-string":         refused,
		"enormous-keys":           refused,
		"enormous-annotations":    refused,
		"enormous-managed-fields": refused,
		"malformed":               either,
		"garbled":                 either,

		"endless-events":    tooLarge,
		"repeated-events":   synced,
		"foreign-events":    synced,
		"endless-bookmarks": synced,
		"endless-event":     either,
		"event-of-elements": either,
		"deep-events":       either,
		"error-events":      synced,
		"ending-watches":    synced,
		"malformed-events":  either,
		"silent-streams":    syncing,
		"endless-streams":   tooLarge,

		"endless-discovery": synced,
		"many-kinds":        synced,
		"deep-discovery":    synced,
		"lying-discovery":   synced,
		"endless-openapi":   synced,

		"retry-after":     syncing,
		"retry-at-once":   syncing,
		"enormous-errors": {StateForbidden, StateSyncing, StateTooLarge},
		"endless-errors":  refused,
		"lying-writes":    synced,
		"endless-writes":  synced,
	}
}

// hangs are the attacks of which there is nothing to say: the API server has not answered yet.
var hangs = []string{"drip", "silent-streams", "retry-after"} //nolint:gochecknoglobals // A constant.

// TestHostileServers watches kinds of each hostile API server beside those of one that is not, with places for two
// lists at once, and lets them go.
func TestHostileServers(t *testing.T) {
	honest, err := hostile.StartHonest(t.Context(), hostile.NewHonest())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(honest.Close)
	states := hostileStates()
	for _, attack := range hostile.Attacks() {
		if !attack.Connects {
			continue
		}
		want, known := states[attack.Name]
		if !known {
			t.Errorf("it is not known what becomes of %s", attack.Name)
			continue
		}
		t.Run(attack.Name, func(t *testing.T) {
			eventually(t, "the cases before have ended", settles(0))
			server, err := hostile.Start(t.Context(), attack, hostile.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			watchHostile(t, attack, want, server, honest)
		})
	}
}

func watchHostile(t *testing.T, attack hostile.Attack, want []State, server, honest *hostile.Server) {
	t.Helper()
	const maxBackoff = 100 * time.Millisecond
	began := time.Now()
	quick := func(o *Options) {
		o.PerKind = Limit{Objects: 2000, Bytes: 8 << 20}
		o.MinBackoff, o.MaxBackoff, o.Linger = 10*time.Millisecond, maxBackoff, 10*time.Millisecond
	}
	places := limits.NewSemaphore[any](2, 0)
	heap := liveheap.Watch(t)
	var changes atomic.Int64
	w, stop := start(t, boundedConfig(server), func(e Event) {
		if e.Type == StateChanged {
			changes.Add(1)
		}
	}, quick, func(o *Options) { o.Lists = places })
	kinds := []Kind{configMaps, newKind("Namespace", "namespaces", true), newKind("Secret", "secrets", false)}
	kinds[0].FieldSelector, kinds[2].MetadataOnly = "", true
	w.Set("test", kinds...)
	for _, kind := range kinds {
		eventually(t, kind.String()+" comes to a state", func() error {
			state, message := w.State(kind)
			if !slices.Contains(want, state) || message == "" && state != StateSynced && !slices.Contains(hangs, attack.Name) {
				return fmt.Errorf("%s: want one of %v, got %s %q", attack.Harm, want, state, message)
			}
			if len(message) > 4<<10 || strings.ContainsRune(message, '\x1b') {
				return fmt.Errorf("the message is not fit for a condition: %q", message)
			}
			return nil
		})
		objects, err := w.List(kind)
		if err == nil && len(objects) > 2000 {
			t.Errorf("%d objects are kept of %s", len(objects), kind)
		}
		for _, i := range objects {
			o := i.Object()
			if o.GroupVersionKind() != kind.GroupVersionKind || !isSegment(o.GetName()) {
				t.Errorf("%s %q was taken for %s", o.GroupVersionKind(), o.GetName(), kind)
			}
		}
	}

	beside, stopBeside := start(t, boundedConfig(honest), func(Event) {}, quick, func(o *Options) { o.Lists = places })
	beside.Set("test", kinds...)
	for _, kind := range kinds {
		eventually(t, kind.String()+" of an honest API server is synced", inState(beside, kind, StateSynced))
	}
	stopBeside()
	stop()
	eventually(t, "nothing is left of it", settles(0))
	if got := heap(); got > maxHostileHeap {
		t.Errorf("%s: the live heap grew by %d MiB", attack.Harm, got>>20)
	}
	// An attempt changes a state twice. The first attempts are closer together, and back-off has a jitter.
	attempts := 100 + 3*int64(2*time.Since(began)/maxBackoff)
	if n := changes.Load(); n > 2*attempts {
		t.Errorf("the states of three kinds changed %d times in %s", n, time.Since(began))
	}
	if server.Trapped() > 0 {
		t.Error("a redirect was followed")
	}
}

func newKind(kind, resource string, clusterScoped bool) Kind {
	return Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: kind}, Resource: resource, ClusterScoped: clusterScoped}
}

func definitionKind() Kind {
	return Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		Resource:         "customresourcedefinitions", ClusterScoped: true, MetadataOnly: true,
	}
}

// boundedConfig is a client's for a server, with the bounds that the transport of a connection has.
func boundedConfig(s *hostile.Server) *rest.Config {
	cfg := &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{CAData: s.Authority()}, QPS: -1}
	return intercepted(cfg, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		req = req.Clone(req.Context())
		req.Header.Set("Accept", strings.ReplaceAll(req.Header.Get("Accept"), "application/vnd.kubernetes.protobuf", "application/json"))
		req.Header.Set("Accept-Encoding", "identity")
		resp, err := next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode/100 == 3 || resp.Header.Get("Content-Encoding") != "" || resp.Header.Get("Content-Type") != "application/json" {
			_ = resp.Body.Close()
			return nil, &limits.Error{Subject: "answer", Limit: limits.LimitContentType}
		}
		scanner := limits.NewScanner("list", limits.WithBytes(8<<20))
		if req.URL.Query().Get("watch") != "" && resp.StatusCode == http.StatusOK {
			scanner = limits.NewStreamScanner("event", limits.WithBytes(8<<20))
		}
		resp.Body = limits.NewBody(req.Context(), resp.Body, scanner, nil, func(error) {})
		return resp, nil
	})
}

// giant is a collection of many objects.
func giant(resource string, n, size int) hostile.Collection {
	text := strings.Repeat("x", size)
	return hostile.Collection{Resource: resource, Count: n, Object: func(i int) map[string]any {
		metadata := map[string]any{"name": fmt.Sprintf("giant-%d", i)}
		if resource != "namespaces" {
			metadata["namespace"] = fmt.Sprintf("n-%d", i%100)
		}
		return map[string]any{"metadata": metadata, "data": map[string]any{"text": text}}
	}}
}

// giantDefinitions is a cluster with many kinds, all of one group and version, so that one document of discovery has
// them all.
func giantDefinitions(n, size int) hostile.Collection {
	text := strings.Repeat("x", size)
	return hostile.Collection{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Count: n, Object: func(i int) map[string]any {
		return map[string]any{
			"metadata": map[string]any{"name": fmt.Sprintf("giant%ds.giants.example.org", i)},
			"spec": map[string]any{
				"group": "giants.example.org", "scope": "Namespaced",
				"names": map[string]any{"plural": fmt.Sprintf("giant%ds", i), "kind": fmt.Sprintf("Giant%d", i)},
				"versions": []any{map[string]any{
					"name": "v1", "served": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "description": text}},
				}},
			},
		}
	}}
}

// TestDiscoveryOfAnHonestGiant asks which of 3,000 kinds is meant.
func TestDiscoveryOfAnHonestGiant(t *testing.T) {
	server, err := hostile.StartHonest(t.Context(), hostile.NewHonest(giantDefinitions(3_000, 0)))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	disco, err := discovery.NewDiscoveryClientForConfig(boundedConfig(server))
	if err != nil {
		t.Fatal(err)
	}
	gvk := schema.GroupVersionKind{Group: "giants.example.org", Version: "v1", Kind: "Giant2999"}
	got, err := NewResolver(ResolverOptions{Client: disco}).Resolve(t.Context(), gvk)
	if want := (Kind{GroupVersionKind: gvk, Resource: "giant2999s", StatusSubresource: true}); err != nil || got != want {
		t.Errorf("want %v, got %v, %v", want, got, err)
	}
}

// TestHonestGiants watches clusters that are large and mean no harm.
func TestHonestGiants(t *testing.T) {
	cases := map[string]struct {
		reason     string
		collection hostile.Collection
		kind       Kind
		reduce     bool
		want       int
	}{
		"Namespaces": {
			"Ten thousand namespaces are a large cluster, and an honest one.",
			giant("namespaces", 10_000, 0), newKind("Namespace", "namespaces", true), false, 10_002,
		},
		"Secrets": {
			"Of fifty thousand Secrets, one in a hundred is kept, as a record.",
			giant("secrets", 50_000, 256), newKind("Secret", "secrets", false), true, 499,
		},
		"Definitions": {
			"Three thousand definitions with schemas of 20 KiB are requested as metadata, without the schemas.",
			giantDefinitions(3_000, 20<<10), definitionKind(), false, 3_000,
		},
		"LargeObjects": {
			"An object may have 1 MiB, and a page of them more than an answer may have.",
			giant("configmaps", 48, 1<<20), newKind("ConfigMap", "configmaps", false), false, 48,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server, err := hostile.StartHonest(t.Context(), hostile.NewHonest(tc.collection))
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			heap := liveheap.Watch(t)
			w, stop := start(t, boundedConfig(server), func(Event) {}, func(o *Options) {
				o.PerKind = Limit{Bytes: 96 << 20}
				if tc.reduce {
					o.Reduce = func(_ Kind, obj *unstructured.Unstructured) (Record, bool) {
						return note{}, strings.HasSuffix(obj.GetName(), "00")
					}
				}
			})
			w.Set("test", tc.kind)
			eventually(t, tc.reason, inState(w, tc.kind, StateSynced))
			var got int
			if tc.reduce {
				entries, err := w.Entries(tc.kind)
				if err != nil {
					t.Fatal(err)
				}
				got = len(entries)
			} else {
				objects, err := w.List(tc.kind)
				if err != nil {
					t.Fatal(err)
				}
				got = len(objects)
			}
			if got != tc.want {
				t.Errorf("%s want %d, got %d", tc.reason, tc.want, got)
			}
			stop()
			if got := heap(); got > 256<<20 {
				t.Errorf("the live heap grew by %d MiB", got>>20)
			}
		})
	}
}
