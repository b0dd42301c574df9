// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/liveheap"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection/connectiontest"
)

// listServer answers the requests that connecting needs, and every other GET with lists. It has its own UID.
func listServer(t *testing.T, number int, list func(w io.Writer, r *http.Request)) []byte {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/readyz":
			_, _ = io.WriteString(w, "ok")
		case r.URL.Query().Get("watch") != "" && r.URL.Query().Get("sendInitialEvents") != "":
			// API servers that cannot stream lists answer like this.
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
		case r.URL.Query().Get("watch") != "":
			w.Header().Set("Content-Type", "application/json")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case strings.HasSuffix(r.URL.Path, "/namespaces/kube-system"):
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"0b7e9a4c-9d1f-4e0a-8a53-%012d"}}`, number)
		case strings.HasSuffix(r.URL.Path, "/configmaps"):
			w.Header().Set("Content-Type", "application/json")
			list(w, r)
		default:
			http.NotFound(w, r)
		}
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return connectiontest.Kubeconfig(t, s.URL, connectiontest.Authority(s), "token")
}

func configMaps(metadataOnly bool) kindwatch.Kind {
	return kindwatch.Kind{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: "configmaps", MetadataOnly: metadataOnly,
	}
}

// watchKinds watches kinds of an engaged cluster, as controllers do.
func watchKinds(t *testing.T, h *harness, name string, kinds ...kindwatch.Kind) *kindwatch.Watcher {
	t.Helper()
	return watchKindsBy(t, h, nil, name, kinds...)
}

// watchKindsBy is watchKinds with its own clock.
func watchKindsBy(t *testing.T, h *harness, clk clock.Clock, name string, kinds ...kindwatch.Kind) *kindwatch.Watcher {
	t.Helper()
	cl, err := h.Get(t.Context(), clusterName(name))
	if err != nil {
		t.Fatal(err)
	}
	o, err := multicluster.WatchOptions(cl)
	if err != nil {
		t.Fatal(err)
	}
	o.Handler = func(kindwatch.Event) {}
	o.MinBackoff, o.MaxBackoff = 50*time.Millisecond, 200*time.Millisecond
	if clk != nil {
		o.Clock = clk
	}
	w, err := kindwatch.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = w.Start(ctx) }()
	t.Cleanup(func() { end(); <-ended })
	w.Set("test", kinds...)
	return w
}

func is(w *kindwatch.Watcher, kind kindwatch.Kind, s kindwatch.State) func() bool {
	return func() bool { got, _ := w.State(kind); return got == s }
}

// TestSixtyMegabytesOfNothingAreNotDecoded has a server that answers lists with 60 MB of empty objects, which took 6 GB
// once decoded.
func TestSixtyMegabytesOfNothingAreNotDecoded(t *testing.T) {
	const most = 150 << 20
	var lists atomic.Int64
	src := newFakeSource()
	h := newHarness(t, src)
	src.set("a", listServer(t, 1, func(w io.Writer, _ *http.Request) {
		lists.Add(1)
		_, _ = io.WriteString(w, `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`)
		chunk := strings.Repeat("{},", 20_000)
		for range 1_000 {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, `{}]}`)
	}))
	h.waitFor(t, "a", StateConnected, fleetv1alpha1.ReasonConnected)
	heap := liveheap.Watch(t)
	whole, metadata := configMaps(false), configMaps(true)
	w := watchKinds(t, h, "a", whole, metadata)
	for _, kind := range []kindwatch.Kind{whole, metadata} {
		connectiontest.Eventually(t, "it is parked", is(w, kind, kindwatch.StateTooLarge))
	}
	connectiontest.Eventually(t, "it was tried several times", func() bool { return lists.Load() > 12 })
	if grown := heap(); grown > most {
		t.Errorf("want at most %d MiB more than before, got %d", most>>20, grown>>20)
	}
	connectiontest.Eventually(t, "the cluster's condition says why", func() bool {
		c, _ := h.Lookup(clusterName("a"))
		return c.State == StateConnected && c.Refused.Reason == fleetv1alpha1.ReasonAnswerRefused && strings.Contains(c.Refused.Message, "list is refused")
	})
}

// honestPage answers with a page of a list of the given number of ConfigMaps of the given size.
func honestPage(w io.Writer, r *http.Request, total, size int) {
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	to := total
	if limit > 0 {
		to = min(total, from+limit)
	}
	more := ""
	if to < total {
		more = strconv.Itoa(to)
	}
	_, _ = fmt.Fprintf(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":%q},"items":[`, more)
	data := strings.Repeat("x", size)
	for i := from; i < to; i++ {
		if i > from {
			_, _ = io.WriteString(w, ",")
		}
		_, _ = fmt.Fprintf(w, `{"metadata":{"namespace":"ns","name":"c%d","resourceVersion":"5","uid":"u%d"},"data":{"x":%q}}`, i, i, data)
	}
	_, _ = io.WriteString(w, "]}")
}

// TestHonestGiantsAreRead lists 50,000 objects, and objects of one MiB.
func TestHonestGiantsAreRead(t *testing.T) {
	for name, tc := range map[string]struct {
		total, size int
	}{
		"ManyObjects": {50_000, 100},
		// This is more than one answer may have, so the list needs pages. Under -race each MiB is scanned for most of a
		// second.
		"LargeObjects": {30, 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			src := newFakeSource()
			h := newHarness(t, src, func(o *Options) { o.Budget = limits.NewBudget(256 << 20) })
			src.set("a", listServer(t, 2, func(w io.Writer, r *http.Request) { honestPage(w, r, tc.total, tc.size) }))
			h.waitFor(t, "a", StateConnected, fleetv1alpha1.ReasonConnected)
			cl, err := h.Get(t.Context(), clusterName("a"))
			if err != nil {
				t.Fatal(err)
			}
			o, err := multicluster.WatchOptions(cl)
			if err != nil {
				t.Fatal(err)
			}
			var seen atomic.Int64
			o.PerKind, o.Total = kindwatch.Unlimited, kindwatch.Unlimited
			o.Handler = func(e kindwatch.Event) {
				if e.Type == kindwatch.Added {
					seen.Add(1)
				}
			}
			w, err := kindwatch.New(o)
			if err != nil {
				t.Fatal(err)
			}
			ctx, end := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { defer close(ended); _ = w.Start(ctx) }()
			t.Cleanup(func() { end(); <-ended })
			w.Set("test", configMaps(false))
			connectiontest.Eventually(t, "everything is listed", is(w, configMaps(false), kindwatch.StateSynced), func() any { _, m := w.State(configMaps(false)); return m })
			if got := seen.Load(); got != int64(tc.total) {
				t.Errorf("want %d objects, got %d", tc.total, got)
			}
		})
	}
}

// TestOnlyClustersThatExceedTheirShareAreParked fills a budget with three clusters, and adds a fourth that needs
// little.
func TestOnlyClustersThatExceedTheirShareAreParked(t *testing.T) {
	const capacity = 32 << 20
	memory := limits.NewBudget(capacity)
	src := newFakeSource()
	h := newHarness(t, src, func(o *Options) { o.Budget = memory })
	watchers := map[string]*kindwatch.Watcher{}
	add := func(name, class string, number, total int) {
		src.set(name, listServer(t, number, func(w io.Writer, r *http.Request) { honestPage(w, r, total, 2_000) }),
			func(e *Enrolment) { e.Class = class })
		h.waitFor(t, name, StateConnected, fleetv1alpha1.ReasonConnected)
		watchers[name] = watchKinds(t, h, name, configMaps(false))
	}
	add("hog0", "tenants", 10, 6_000)
	connectiontest.Eventually(t, "a budget that is idle is granted whole", is(watchers["hog0"], configMaps(false), kindwatch.StateSynced))
	add("hog1", "tenants", 11, 6_000)
	add("hog2", "tenants", 12, 6_000)
	add("honest", "default", 13, 1_000)
	connectiontest.Eventually(t, "a cluster within its share is served", is(watchers["honest"], configMaps(false), kindwatch.StateSynced))
	connectiontest.Eventually(t, "a cluster that exceeds it is parked, and its state says why", func() bool {
		for _, name := range []string{"hog0", "hog1", "hog2"} {
			if c, _ := h.Lookup(clusterName(name)); c.Refused.Reason == fleetv1alpha1.ReasonMemoryShareExceeded && strings.Contains(c.Refused.Message, name) {
				return true
			}
		}
		return false
	})
	if c, _ := h.Lookup(clusterName("honest")); c.Refused.Reason != "" {
		t.Errorf("want no refusal of a cluster within its share, got %+v", c.Refused)
	}
	if s, m := watchers["honest"].State(configMaps(false)); s != kindwatch.StateSynced {
		t.Errorf("want a cluster within its share left alone, got %s %s", s, m)
	}
	if used, _ := memory.Used(); used > capacity+capacity/8 {
		t.Errorf("want at most %d bytes held, got %d", capacity, used)
	}
	src.change("honest", func(e *Enrolment) { e.Class = "gold" })
	connectiontest.Eventually(t, "what is held of a cluster counts in its new class", func() bool {
		_, used := memory.Used()
		return slices.ContainsFunc(used, func(u limits.Usage) bool {
			return u.Cluster == string(clusterName("honest")) && u.Class == "gold" && u.Bytes > 0
		})
	})
	for _, name := range []string{"hog0", "hog1", "hog2", "honest"} {
		src.remove(name)
	}
	connectiontest.Eventually(t, "everything is given back", func() bool { used, all := memory.Used(); return used == 0 && len(all) == 0 })
}

// TestKindsThatAreNeverSyncedAreReported has a server whose lists end in the middle. Its cluster used to be Connected,
// and nothing reported what was wrong.
func TestKindsThatAreNeverSyncedAreReported(t *testing.T) {
	src := newFakeSource()
	h := newHarness(t, src)
	var honest atomic.Bool
	src.set("a", listServer(t, 1, func(w io.Writer, r *http.Request) {
		if honest.Load() {
			honestPage(w, r, 1, 1)
			return
		}
		_, _ = io.WriteString(w, `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{},`)
	}))
	h.waitFor(t, "a", StateConnected, fleetv1alpha1.ReasonConnected)
	clk := clocktesting.NewFakeClock(time.Now())
	w := watchKindsBy(t, h, clk, "a", configMaps(false))
	unsynced := func() []kindwatch.Unsynced { c, _ := h.Lookup(clusterName("a")); return c.Unsynced }
	connectiontest.Eventually(t, "the profile can say what is wrong", func() bool {
		clk.Step(time.Second)
		got := unsynced()
		return len(got) == 1 && got[0].Kind == "configmaps" && got[0].Cause != ""
	})
	honest.Store(true)
	connectiontest.Eventually(t, "it is synced, and after a while nothing is reported as wrong", func() bool {
		clk.Step(time.Second)
		return is(w, configMaps(false), kindwatch.StateSynced)() && len(unsynced()) == 0
	})
}
