// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/fakefleet"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// benchObjects is how many objects have references.
const benchObjects = 1000

// BenchmarkController makes the controller resolve 1, 10 and 100 references, each to its own ConfigMap, of 1,000
// objects on a real API server. An operation begins with their reconciliation and ends when the last condition is
// written. Then it counts the requests that these objects cost while idle: while each of them changes in a way that
// does not matter, and when the controller reconciles all of them again, as after a start. Watches, lists of a whole
// kind, and discovery requests, once a minute, are not counted.
//
// The references are resolved once, or follow their sources (always). With waiting, the objects exist before the
// ConfigMap that they reference, and an operation begins with its creation.
func BenchmarkController(b *testing.B) {
	s := newBenchServer(b)
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("references=%d", n), func(b *testing.B) { s.resolve(b, n, commonv1alpha1.ResolveOnce) })
	}
	for _, n := range []int{1, 10} {
		b.Run(fmt.Sprintf("always/references=%d", n), func(b *testing.B) { s.resolve(b, n, commonv1alpha1.ResolveAlways) })
	}
	b.Run("waiting", s.wait)
}

// resolve resolves n references of each object, and then measures what may cost requests while the objects are idle.
func (s *benchServer) resolve(b *testing.B, n int, policy commonv1alpha1.ResolvePolicy) {
	b.Helper()
	for b.Loop() {
		b.StopTimer()
		s.disable(b)
		ns := s.namespace(b)
		s.fillSources(b, ns, n)
		s.fill(b, ns, n, policy)
		before := s.traffic.seen()
		b.StartTimer()
		s.setMode(b, fleetv1alpha1.ReferencesModeEnabled)
		s.waitFor(b, before.resolved+benchObjects)
		b.StopTimer()
		first := s.traffic.seen()

		s.eachObject(b, ns, func(ctx context.Context, u *unstructured.Unstructured) error {
			return s.client.Patch(ctx, u, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"changed":"true"}}}`)))
		})
		s.resolveAnother(b, ns)
		changed := s.traffic.seen()

		s.disable(b)
		s.setMode(b, fleetv1alpha1.ReferencesModeEnabled)
		// The first may be among those that are listed, the second comes after all of these.
		s.resolveAnother(b, ns)
		s.resolveAnother(b, ns)
		again := s.traffic.seen()

		b.ReportMetric(float64(first.requests-before.requests)/benchObjects, "requests/object")
		b.ReportMetric(float64(changed.requests-first.requests), "requests-changed")
		b.ReportMetric(float64(again.requests-changed.requests), "requests-again")
		s.empty(b, ns)
		b.StartTimer()
	}
}

// wait lets objects wait for one ConfigMap, and then be resolved.
func (s *benchServer) wait(b *testing.B) {
	b.Helper()
	for b.Loop() {
		b.StopTimer()
		s.disable(b)
		ns := s.namespace(b)
		s.fill(b, ns, 1, commonv1alpha1.ResolveOnce)
		before := s.traffic.seen()
		s.setMode(b, fleetv1alpha1.ReferencesModeEnabled)
		s.waitFor(b, before.resolved+benchObjects)
		waiting := s.traffic.seen()
		b.StartTimer()
		s.fillSources(b, ns, 1)
		s.waitFor(b, waiting.resolved+benchObjects)
		b.StopTimer()
		resolved := s.traffic.seen()
		b.ReportMetric(float64(waiting.requests-before.requests)/benchObjects, "requests-to-wait/object")
		b.ReportMetric(float64(resolved.requests-waiting.requests)/benchObjects, "requests/object")
		s.empty(b, ns)
		b.StartTimer()
	}
}

// another is the name of an object that is resolved to show that everything before it has been reconciled. It is not
// counted.
const another = "another"

// traffic counts the controller's requests to the workload cluster.
type traffic struct{ requests, resolved atomic.Int64 }

type seen struct{ requests, resolved int64 }

func (t *traffic) seen() seen { return seen{t.requests.Load(), t.resolved.Load()} }

// through counts the requests through a transport.
func (t *traffic) through(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(req *http.Request) (*http.Response, error) {
		path := req.URL.Path
		list := req.Method == http.MethodGet && (strings.HasSuffix(path, "/networks") || strings.HasSuffix(path, "/customresourcedefinitions"))
		discovery := strings.Count(path, "/") <= 3
		if req.URL.Query().Get("watch") == "" && !list && !discovery && !strings.Contains(path, another) {
			t.requests.Add(1)
		}
		resp, err := next.RoundTrip(req)
		if err == nil && resp.StatusCode == http.StatusOK && req.Method == http.MethodPatch && strings.HasSuffix(path, "/status") {
			t.resolved.Add(1)
		}
		return resp, err
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

// benchServer is an API server with Networks, and the controller, for which it is a workload cluster.
type benchServer struct {
	client  client.Client
	traffic traffic
	series  *prometheus.Registry
	class   *fleetv1alpha1.EnrollmentClass
	others  int
}

func newBenchServer(b *testing.B) *benchServer {
	b.Helper()
	env, err := testenv.New(testenv.CRDs())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = env.Stop() })
	cfg, err := testenv.Start(env)
	if err != nil {
		b.Fatal(err)
	}
	cfg.QPS = -1
	s := &benchServer{series: prometheus.NewRegistry(), class: &fleetv1alpha1.EnrollmentClass{
		ObjectMeta: metav1.ObjectMeta{Name: className},
		Spec:       fleetv1alpha1.EnrollmentClassSpec{Agent: fleetv1alpha1.AgentSpec{Mode: fleetv1alpha1.AgentModeDisabled}},
	}}
	if s.client, err = client.New(cfg, client.Options{Scheme: scheme()}); err != nil {
		b.Fatal(err)
	}
	crd, err := withReferences("Network", apiextensionsv1.NamespaceScoped)
	if err != nil {
		b.Fatal(err)
	}
	for _, obj := range []client.Object{s.class, crd} {
		if err := s.client.Create(b.Context(), obj); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.start(b.Context(), cfg); err != nil {
		b.Fatal(err)
	}
	return s
}

// start runs the controller for the API server until ctx ends.
func (s *benchServer) start(ctx context.Context, cfg *rest.Config) error {
	mgr, err := newManager(cfg)
	if err != nil {
		return err
	}
	gate, fleet := multicluster.NewGate(), &fakefleet.Fleet{}
	fleet.Set(connection.Cluster{Name: workloadA, State: connection.StateConnected, Enrolment: connection.Enrolment{Class: className}})
	if err := Setup(mgr, Options{Fleet: fleet, Gate: gate, Registerer: s.series, SkipNameValidation: new(true)}); err != nil {
		return err
	}
	go func() { _ = mgr.Start(ctx) }()
	counted := rest.CopyConfig(cfg)
	counted.Wrap(s.traffic.through)
	cl, err := cluster.New(counted, func(o *cluster.Options) { o.Scheme = scheme() })
	if err != nil {
		return err
	}
	go func() { _ = cl.Start(ctx) }()
	gate.Open(workloadA)
	return mgr.Engage(ctx, workloadA, cl)
}

func (s *benchServer) setMode(b *testing.B, mode fleetv1alpha1.ReferencesMode) {
	b.Helper()
	s.class.Spec.References.Mode = mode
	if err := s.client.Update(b.Context(), s.class); err != nil {
		b.Fatal(err)
	}
}

// disable makes the controller forget everything.
func (s *benchServer) disable(b *testing.B) {
	b.Helper()
	s.setMode(b, fleetv1alpha1.ReferencesModeDisabled)
	for {
		families, err := s.series.Gather()
		if err != nil {
			b.Fatal(err)
		}
		if !slices.ContainsFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "masthead_references_objects" }) {
			return
		}
		select {
		case <-b.Context().Done():
			b.Fatal("the controller did not stop to look after the cluster")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// namespace makes a namespace.
func (s *benchServer) namespace(b *testing.B) string {
	b.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}
	if err := s.client.Create(b.Context(), ns); err != nil {
		b.Fatal(err)
	}
	return ns.Name
}

// fillSources creates the sources of n references.
func (s *benchServer) fillSources(b *testing.B, ns string, n int) {
	b.Helper()
	for i := range n {
		source := configMap(ns, fmt.Sprintf("source-%d", i), map[string]string{"region": "eu-west-1"})
		if err := s.client.Create(b.Context(), source); err != nil {
			b.Fatal(err)
		}
	}
}

// fill creates the objects with n references each.
func (s *benchServer) fill(b *testing.B, ns string, n int, policy commonv1alpha1.ResolvePolicy) {
	b.Helper()
	s.eachObject(b, ns, func(ctx context.Context, u *unstructured.Unstructured) error {
		u.Object["spec"] = referenceSpec("source", n, policy)
		return s.createServed(ctx, u)
	})
}

// createServed creates an object as soon as its kind is served.
func (s *benchServer) createServed(ctx context.Context, u *unstructured.Unstructured) error {
	for {
		err := s.client.Create(ctx, u)
		if !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// referenceSpec has n references, each to its own ConfigMap.
func referenceSpec(source string, n int, policy commonv1alpha1.ResolvePolicy) map[string]any {
	references := make([]any, n)
	for i := range references {
		references[i] = map[string]any{
			"resource": "configmaps", "name": fmt.Sprintf("%s-%d", source, i), "fromFieldPath": "data.region", "toFieldPath": fmt.Sprintf("spec.values.v%d", i),
			"policy": map[string]any{"resolve": string(policy)},
		}
	}
	return map[string]any{"references": references}
}

// eachObject calls fn for each object of a namespace, for several concurrently.
func (s *benchServer) eachObject(b *testing.B, ns string, fn func(context.Context, *unstructured.Unstructured) error) {
	b.Helper()
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(16)
	for i := range benchObjects {
		group.Go(func() error { return fn(ctx, benchNetwork(ns, fmt.Sprintf("network-%d", i))) })
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}

func benchNetwork(ns, name string) *unstructured.Unstructured {
	u := network("Network", ns, name, "")
	delete(u.Object, "spec")
	return u
}

// resolveAnother creates one more object, and waits until it is resolved.
func (s *benchServer) resolveAnother(b *testing.B, ns string) {
	b.Helper()
	s.others++
	before, name := s.traffic.seen(), fmt.Sprintf("%s-%d", another, s.others)
	source := configMap(ns, name+"-0", map[string]string{"region": "eu-west-1"})
	u := benchNetwork(ns, name)
	u.Object["spec"] = referenceSpec(name, 1, commonv1alpha1.ResolveOnce)
	for _, obj := range []client.Object{source, u} {
		if err := s.client.Create(b.Context(), obj); err != nil {
			b.Fatal(err)
		}
	}
	s.waitFor(b, before.resolved+1)
}

// waitFor waits until the given number of conditions were written.
func (s *benchServer) waitFor(b *testing.B, resolved int64) {
	b.Helper()
	for s.traffic.seen().resolved < resolved {
		select {
		case <-b.Context().Done():
			b.Fatalf("%d of %d conditions were written", s.traffic.seen().resolved, resolved)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// empty deletes the objects of a namespace.
func (s *benchServer) empty(b *testing.B, ns string) {
	b.Helper()
	if err := s.client.DeleteAllOf(b.Context(), benchNetwork("", ""), client.InNamespace(ns)); err != nil {
		b.Fatal(err)
	}
}
