// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/metric"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/pkg/readonlypolicy"
	"github.com/masthead-dev/masthead/test/fakefleet"
	"github.com/masthead-dev/masthead/test/testenv"
)

// mastheadUser is as whom the workload cluster knows Masthead in the tests. The quotes are there to be quoted.
const mastheadUser = `masthead's "own" user`

// The API servers of a hub and of a workload cluster. The tests run one after the other, and each leaves the workload
// cluster as it found it; in the hub each has API groups of its own.
var (
	hubConfig, workloadConfig *rest.Config

	startServers = sync.OnceValue(func() error {
		crds, err := testenv.CrossplaneCRDs(context.Background())
		if err != nil {
			return err
		}
		for config, crds := range map[**rest.Config][]string{
			&hubConfig: {
				testenv.CRDs(),
				filepath.Join(crds, "apiextensions.crossplane.io_compositeresourcedefinitions.yaml"),
				filepath.Join(crds, "apiextensions.crossplane.io_compositions.yaml"),
			},
			&workloadConfig: nil,
		} {
			env, err := testenv.New(crds...)
			if err != nil {
				return err
			}
			servers = append(servers, env)
			if *config, err = env.Start(); err != nil {
				return fmt.Errorf("cannot start an API server: %w", err)
			}
		}
		return nil
	})
	servers []*envtest.Environment
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	code := m.Run()
	for _, s := range servers {
		_ = s.Stop()
	}
	os.Exit(code)
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, fleetv1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

// traffic sees, and can answer, what the controller asks of the workload cluster.
type traffic struct {
	mu     sync.Mutex
	seen   []string
	answer func(*http.Request) *http.Response

	// unanswered is how many of the requests that were seen have no answer yet.
	unanswered atomic.Int32

	// admit changes what is written, as an admission webhook of the cluster would.
	admit func(map[string]any)

	// user is as whom the requests are made, instead of the one whose credentials they had at first.
	user string
}

func (r *traffic) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		r.mu.Lock()
		if !strings.Contains(req.URL.RawQuery, "watch=true") {
			r.seen = append(r.seen, req.Method+" "+req.URL.Path)
			r.unanswered.Add(1)
			defer r.unanswered.Add(-1)
		}
		answer, user, admit := r.answer, r.user, r.admit
		r.mu.Unlock()
		if user != "" {
			req = req.Clone(req.Context())
			req.Header.Set("Impersonate-User", user)
		}
		if admit != nil && req.Body != nil && (req.Method == http.MethodPost || req.Method == http.MethodPut) {
			req = admitted(req, admit)
		}
		if answer != nil {
			if resp := answer(req); resp != nil {
				return resp, nil
			}
		}
		return next.RoundTrip(req)
	})
}

// progress returns how many requests were seen, and how many of them have no answer yet. Watches are neither.
func (r *traffic) progress() (seen, unanswered int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen), int(r.unanswered.Load())
}

func admitted(req *http.Request, admit func(map[string]any)) *http.Request {
	content := map[string]any{}
	if err := json.NewDecoder(req.Body).Decode(&content); err != nil {
		panic(err)
	}
	admit(content)
	body, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	req = req.Clone(req.Context())
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return req
}

func (r *traffic) count(methods ...string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, s := range r.seen {
		for _, m := range methods {
			if strings.HasPrefix(s, m) {
				n++
			}
		}
	}
	return n
}

func (r *traffic) last(n int) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen[max(0, len(r.seen)-n):])
}

func (r *traffic) writes() int {
	return r.count(http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// told is a DefinitionReporter that remembers.
type told struct {
	mu    sync.Mutex
	kinds map[string]string
}

func (r *told) set(crd, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kinds[crd] = what
}

func (r *told) get(crd string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kinds[crd]
}

func (r *told) DefinitionServed(_ mcr.ClusterName, crd string)             { r.set(crd, "Served") }
func (r *told) DefinitionRefused(_ mcr.ClusterName, crd, reason, _ string) { r.set(crd, reason) }
func (r *told) DefinitionForgotten(_ mcr.ClusterName, crd string)          { r.set(crd, "") }

// fixture is a hub and a workload cluster with discovery between them.
type fixture struct {
	t   *testing.T
	ctx context.Context

	hub, workload client.Client
	asked         *traffic
	fleet         *fakefleet.Fleet
	told          *told
	registry      *prometheus.Registry
	reconciler    *reconciler
	cluster       mcr.ClusterName
	class         *fleetv1alpha1.EnrollmentClass
	group         string
	user          string
	userGroups    []string

	users *readonlypolicy.Users

	// othersPolicy is whether another hub protects the cluster.
	othersPolicy bool

	// owner is the hub as the owner of what is in the cluster.
	owner hubidentity.Owner

	// clock is the real one if it is nil.
	clock clock.PassiveClock

	mgr             mcmanager.Manager
	gate            *multicluster.Gate
	managerCtx      context.Context
	running         *sync.WaitGroup
	stop, disengage context.CancelFunc
}

var fixtures atomic.Int32

// newFixture starts discovery for a cluster whose class offers one API group.
func newFixture(t *testing.T, options ...func(*fleetv1alpha1.EnrollmentClass)) *fixture {
	t.Helper()
	f := prepareFixture(t, options...)
	f.start()
	return f
}

// prepareFixture is newFixture without starting it.
func prepareFixture(t *testing.T, options ...func(*fleetv1alpha1.EnrollmentClass)) *fixture {
	t.Helper()
	if err := startServers(); err != nil {
		t.Fatal(err)
	}
	n := fixtures.Add(1)
	f := &fixture{
		owner: owner,
		t:     t, ctx: context.WithoutCancel(t.Context()), asked: &traffic{}, told: &told{kinds: map[string]string{}},
		fleet:    &fakefleet.Fleet{},
		registry: prometheus.NewRegistry(),
		cluster:  mcr.ClusterName(fmt.Sprintf("capi/fleet/w%d", n)),
		group:    fmt.Sprintf("db%d.acmeco.org", n),
		user:     mastheadUser, userGroups: []string{"system:masters"},
	}
	f.hub, f.workload = mustClient(t, hubConfig), mustClient(t, workloadConfig)
	f.class = &fleetv1alpha1.EnrollmentClass{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("class-%d", n)},
		Spec: fleetv1alpha1.EnrollmentClassSpec{Agent: fleetv1alpha1.AgentSpec{
			Mode: fleetv1alpha1.AgentModeReadWrite, APIGroups: []string{f.group}, DefaultTargetNamespace: "bar",
		}, Applications: fleetv1alpha1.ApplicationsSpec{Mode: fleetv1alpha1.ApplicationsModeDisabled}},
	}
	for _, o := range options {
		o(f.class)
	}
	f.create(f.hub, f.class)
	return f
}

func mustClient(t *testing.T, cfg *rest.Config) client.Client {
	t.Helper()
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	c, err := client.New(cfg, client.Options{Scheme: scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// start runs discovery and engages the cluster.
func (f *fixture) start() {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	hub := rest.CopyConfig(hubConfig)
	hub.QPS = -1
	f.gate = multicluster.NewGate()
	mgr, err := mcmanager.New(hub, nil, ctrl.Options{
		Scheme: scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, LeaderElection: false,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.users = &readonlypolicy.Users{}
	o := Options{Fleet: f.fleet, Users: f.users, Gate: f.gate, Reporter: f.told, Registerer: f.registry, Clock: f.clock, SkipNameValidation: new(true)}
	if err := o.setDefaults(); err != nil {
		f.t.Fatal(err)
	}
	if f.reconciler, err = setup(mgr, o); err != nil {
		f.t.Fatal(err)
	}
	f.fleet.Set(connection.Cluster{
		Name: f.cluster, State: connection.StateConnected, Hub: f.owner,
		Enrolment: connection.Enrolment{
			Class: f.class.Name,
			Object: connection.ObjectReference{
				GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
				Namespace:        "default", Name: f.class.Name, UID: types.UID(f.class.Name),
			},
		},
	})
	f.mgr, f.managerCtx, f.running = mgr, ctx, &sync.WaitGroup{}
	f.running.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			f.t.Errorf("manager: %v", err)
		}
	})
	f.engage()
	f.stop = sync.OnceFunc(func() {
		cancel()
		f.running.Wait()
	})
	f.t.Cleanup(f.leave)
}

// engage connects the cluster, as the provider would.
func (f *fixture) engage() {
	f.t.Helper()
	cfg := rest.CopyConfig(workloadConfig)
	cfg.QPS = -1
	cfg.Impersonate = rest.ImpersonationConfig{UserName: f.user, Groups: f.userGroups}
	cfg.Wrap(f.asked.wrap)
	cl, err := cluster.New(cfg, func(o *cluster.Options) { o.Scheme = scheme() })
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, disengage := context.WithCancel(f.managerCtx)
	f.running.Go(func() { _ = cl.Start(ctx) })
	f.gate.Open(f.cluster)
	if err := f.mgr.Engage(ctx, f.cluster, cl); err != nil {
		f.t.Fatal(err)
	}
	f.disengage = func() {
		disengage()
		f.gate.Forget(f.cluster)
	}
}

// leave leaves the workload cluster as it was: a class that is disabled takes everything back.
func (f *fixture) leave() {
	// Also if something is left: what runs would get in the way of the tests that follow.
	defer f.stop()
	f.asked.mu.Lock()
	f.asked.answer = nil
	f.asked.mu.Unlock()
	f.changeClass(func(agent *fleetv1alpha1.AgentSpec) { agent.Mode = fleetv1alpha1.AgentModeDisabled })
	f.eventually("everything is taken back", func() error {
		for _, k := range mirroredKinds() {
			if crd, err := f.crd(f.workload, k.crd()); err == nil && f.owner.IsManaged(crd) {
				return fmt.Errorf("%s is still there", k.crd())
			}
		}
		for _, kind := range []string{policyKind.Kind, bindingKind.Kind} {
			u := object(policyKind.GroupVersion().WithKind(kind), policyName)
			if err := f.workload.Get(f.ctx, client.ObjectKeyFromObject(u), u); !apierrors.IsNotFound(err) && (err != nil || f.owner.IsManaged(u)) {
				return fmt.Errorf("the %s is still there (%w)", kind, err)
			}
		}
		return nil
	})
	if f.othersPolicy {
		return
	}
	// The API server notices a moment later that the policy is gone. Until then it refuses what the next test writes under
	// another name.
	f.eventually("the policy is in force no more", func() error {
		labelled := f.claimCRD("leftovers", map[string]string{fleetv1alpha1.ManagedByLabel: managedByValue})
		return f.workload.Create(f.ctx, labelled, client.DryRunAll)
	})
}

// restart stops discovery and starts it anew.
func (f *fixture) restart() {
	f.t.Helper()
	f.stop()
	f.registry = prometheus.NewRegistry()
	f.start()
}

func (f *fixture) changeClass(change func(*fleetv1alpha1.AgentSpec)) {
	f.t.Helper()
	f.edit(f.hub, f.class, func() { change(&f.class.Spec.Agent) })
}

func (f *fixture) create(c client.Client, obj client.Object) {
	f.t.Helper()
	if err := c.Create(f.ctx, obj); err != nil {
		f.t.Fatalf("cannot create %T %q: %v", obj, obj.GetName(), err)
	}
}

func (f *fixture) delete(c client.Client, obj client.Object) {
	f.t.Helper()
	if err := client.IgnoreNotFound(c.Delete(f.ctx, obj)); err != nil {
		f.t.Fatalf("cannot delete %T %q: %v", obj, obj.GetName(), err)
	}
}

// eventually waits until fn returns no error.
func (f *fixture) eventually(what string, fn func() error) {
	f.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(f.ctx, 20*time.Millisecond, 60*time.Second, true, func(context.Context) (bool, error) {
		last = fn()
		return last == nil, nil
	})
	if err != nil {
		f.t.Fatalf("%s: %v (%v)", what, last, err)
	}
}

// settled waits until nothing is asked of the workload cluster any more, and all that was asked is answered: what
// follows from a slow answer is still to come.
func (f *fixture) settled() {
	f.t.Helper()
	quiet, before := 0, -1
	f.eventually("discovery does not come to rest", func() error {
		now, unanswered := f.asked.progress()
		if now == before && unanswered == 0 {
			quiet++
		} else {
			quiet, before = 0, now
		}
		if quiet < 100 {
			return errors.New("it still asks the API server")
		}
		return nil
	})
}

// edit changes an object, whoever else changes it meanwhile.
func (f *fixture) edit(c client.Client, obj client.Object, change func()) {
	f.t.Helper()
	f.eventually("editing "+obj.GetName(), func() error {
		if err := c.Get(f.ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		change()
		return c.Update(f.ctx, obj)
	})
}

func (f *fixture) crd(c client.Client, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	return crd, c.Get(f.ctx, types.NamespacedName{Name: name}, crd)
}

func object(gvk schema.GroupVersionKind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(gvk)
	u.SetName(name)
	return u
}

var (
	xrdGVK         = schema.GroupVersionKind{Group: crossplaneGroup, Version: "v1", Kind: "CompositeResourceDefinition"}
	compositionGVK = schema.GroupVersionKind{Group: crossplaneGroup, Version: "v1", Kind: "Composition"}
)

// xrd creates a definition in the hub, as a platform team does, with the status that Crossplane gives it.
func (f *fixture) xrd(plural string) *unstructured.Unstructured {
	f.t.Helper()
	u := object(xrdGVK, plural+"."+f.group)
	u.SetLabels(map[string]string{"tier": "gold", "pkg.crossplane.io/package": "internal"})
	u.SetAnnotations(map[string]string{"hub.example.org/note": "stays in the hub"})
	u.Object["spec"] = map[string]any{
		"group": f.group, "scope": "LegacyCluster",
		"names":                map[string]any{"kind": "Composite" + plural, "plural": plural},
		"claimNames":           map[string]any{"kind": "Claim" + plural, "plural": "claim" + plural},
		"connectionSecretKeys": []any{"username", "password", "endpoint"},
		"conversion": map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"conversionReviewVersions": []any{"v1"},
			"clientConfig":             map[string]any{"caBundle": "aHVi", "service": map[string]any{"name": "convert", "namespace": "hub-internal"}},
		}},
		"versions": []any{map[string]any{
			"name": "v1alpha1", "served": true, "referenceable": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object"}}}},
		}},
	}
	f.create(f.hub, u)
	f.t.Cleanup(func() { f.delete(f.hub, u) })
	u.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "Offered", "status": "True", "reason": "WatchingCompositeResourceClaim", "lastTransitionTime": "2026-01-02T03:04:05Z",
	}}}
	if err := f.hub.Status().Update(f.ctx, u); err != nil {
		f.t.Fatal(err)
	}
	return u
}

// composition creates a Composition in the hub for a kind of the fixture's API group.
func (f *fixture) composition(name, plural string) *unstructured.Unstructured {
	f.t.Helper()
	u := object(compositionGVK, name+"."+f.group)
	u.SetLabels(map[string]string{"provider": "aws"})
	u.Object["spec"] = map[string]any{
		"compositeTypeRef": map[string]any{"apiVersion": f.group + "/v1alpha1", "kind": "Composite" + plural},
		"mode":             "Pipeline",
		"pipeline": []any{map[string]any{
			"step": "compose", "functionRef": map[string]any{"name": "function-auto-ready"},
		}},
	}
	f.create(f.hub, u)
	f.t.Cleanup(func() { f.delete(f.hub, u) })
	return u
}

// copy waits until the workload cluster has a copy of an object of the hub that check accepts.
func (f *fixture) copy(hub *unstructured.Unstructured, check func(*unstructured.Unstructured) error) *unstructured.Unstructured {
	f.t.Helper()
	u := object(hub.GroupVersionKind(), hub.GetName())
	f.eventually("the copy of "+hub.GetName(), func() error {
		if err := f.workload.Get(f.ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}
		if check != nil {
			return check(u)
		}
		return nil
	})
	return u
}

// gone waits until the workload cluster has no object of that name.
func (f *fixture) gone(hub *unstructured.Unstructured) {
	f.t.Helper()
	f.eventually("the copy of "+hub.GetName()+" goes", func() error {
		u := object(hub.GroupVersionKind(), hub.GetName())
		err := f.workload.Get(f.ctx, client.ObjectKeyFromObject(u), u)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return nil
		}
		return fmt.Errorf("it is there (%w)", err)
	})
}

func (f *fixture) reported(crd, what string) {
	f.t.Helper()
	f.eventually("the report about "+crd, func() error {
		if got := f.told.get(crd); got != what {
			return fmt.Errorf("want %q, got %q", what, got)
		}
		return nil
	})
}

// gauge returns the value of a metric that has these label values, where the name of the fixture's cluster stands for
// its labels; -1 if there is no such series.
func (f *fixture) gauge(name string, labels ...string) float64 {
	f.t.Helper()
	if i := slices.Index(labels, string(f.cluster)); i >= 0 {
		labels = slices.Replace(slices.Clone(labels), i, i+1, metric.ClusterValues(f.cluster)...)
	}
	families, err := f.registry.Gather()
	if err != nil {
		f.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			values := map[string]bool{}
			for _, l := range m.GetLabel() {
				values[l.GetValue()] = true
			}
			all := true
			for _, l := range labels {
				all = all && values[l]
			}
			if all {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return -1
}

func (f *fixture) gaugeIs(want float64, name string, labels ...string) {
	f.t.Helper()
	f.eventually("the metric "+name, func() error {
		if got := f.gauge(name, labels...); got != want {
			return fmt.Errorf("want %v, got %v", want, got)
		}
		return nil
	})
}

var _ Fleet = &connection.Provider{}
