// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/test/fakefleet"
	"github.com/masthead-dev/masthead/test/testenv"
)

// The API servers of a hub and of a workload cluster. Each test has a namespace of its own in the workload cluster.
var (
	hubServer, workloadServer *envtest.Environment

	startServers = sync.OnceValue(func() error {
		for server, crds := range map[**envtest.Environment][]string{&hubServer: {testenv.CRDs()}, &workloadServer: nil} {
			env, err := testenv.New(crds...)
			if err != nil {
				return err
			}
			*server = env
			if _, err := env.Start(); err != nil {
				return fmt.Errorf("cannot start an API server: %w", err)
			}
		}
		return nil
	})
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	code := m.Run()
	for _, s := range []*envtest.Environment{hubServer, workloadServer} {
		if s != nil {
			_ = s.Stop()
		}
	}
	os.Exit(code)
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, fleetv1alpha1.AddToScheme, appsv1alpha1.AddToScheme,
	} {
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

	// after is called when a request has its answer, before that is passed on.
	after func(*http.Request)

	// held is the path of watches that report nothing until release is closed.
	held    string
	release chan struct{}

	// unanswered is how many of the requests that were seen have no answer yet.
	unanswered atomic.Int32
}

func (r *traffic) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		r.mu.Lock()
		if !strings.Contains(req.URL.RawQuery, "watch=true") {
			r.seen = append(r.seen, req.Method+" "+req.URL.Path)
			r.unanswered.Add(1)
			defer r.unanswered.Add(-1)
		}
		answer, after := r.answer, r.after
		r.mu.Unlock()
		if answer != nil {
			if resp := answer(req); resp != nil {
				return resp, nil
			}
		}
		resp, err := next.RoundTrip(req)
		if after != nil {
			after(req)
		}
		if err == nil && strings.Contains(req.URL.RawQuery, "watch=true") {
			resp.Body = &watched{resp.Body, r, req.URL.Path}
		}
		return resp, err
	})
}

// watched is the body of the answer to a watch.
type watched struct {
	io.ReadCloser
	traffic *traffic
	path    string
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.traffic.mu.Lock()
	held, release := w.traffic.held, w.traffic.release
	w.traffic.mu.Unlock()
	if held == w.path && release != nil {
		<-release
	}
	return n, err
}

// hold keeps back what the watches of a path report until the function that it returns is called.
func (r *traffic) hold(t *testing.T, path string) (release func()) {
	t.Helper()
	ch := make(chan struct{})
	r.mu.Lock()
	r.held, r.release = path, ch
	r.mu.Unlock()
	release = sync.OnceFunc(func() {
		r.mu.Lock()
		r.held, r.release = "", nil
		r.mu.Unlock()
		close(ch)
	})
	t.Cleanup(release)
	return release
}

func (r *traffic) setAfter(after func(*http.Request)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.after = after
}

// progress returns how many requests were seen, and how many of them have no answer yet. Watches are neither.
func (r *traffic) progress() (seen, unanswered int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen), int(r.unanswered.Load())
}

func (r *traffic) setAnswer(answer func(*http.Request) *http.Response) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// since returns what was asked after the first n requests, with one of the methods, or with any.
func (r *traffic) since(n int, methods ...string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, s := range r.seen[n:] {
		if method, _, _ := strings.Cut(s, " "); len(methods) == 0 || slices.Contains(methods, method) {
			out = append(out, s)
		}
	}
	return out
}

func (r *traffic) count() int { return len(r.since(0)) }

// writes are the methods that change something.
func writes() []string {
	return []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// fixture is a hub and a workload cluster whose Applications are looked after.
type fixture struct {
	t   *testing.T
	ctx context.Context

	hub, workload client.Client
	asked         *traffic
	fleet         *fakefleet.Fleet
	registry      *prometheus.Registry
	reconciler    *reconciler
	cluster       mcr.ClusterName
	class         *fleetv1alpha1.EnrollmentClass
	namespace     string
	options       []func(*Options)

	// user is as whom the controller knows itself in the workload cluster; empty for an administrator.
	user string

	mgr             mcmanager.Manager
	gate            *multicluster.Gate
	managerCtx      context.Context
	running         *sync.WaitGroup
	stop, disengage context.CancelFunc
}

var fixtures atomic.Int32

func newFixture(t *testing.T, options ...func(*Options)) *fixture {
	t.Helper()
	if err := startServers(); err != nil {
		t.Fatal(err)
	}
	n := fixtures.Add(1)
	f := &fixture{
		t: t, ctx: context.WithoutCancel(t.Context()), asked: &traffic{},
		fleet:     &fakefleet.Fleet{},
		cluster:   mcr.ClusterName(fmt.Sprintf("capi/fleet/w%d", n)),
		namespace: fmt.Sprintf("shop-%d", n), options: options,
	}
	f.hub, f.workload = mustClient(t, hubServer.Config), mustClient(t, workloadServer.Config)
	f.class = &fleetv1alpha1.EnrollmentClass{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("class-%d", n)},
		Spec:       fleetv1alpha1.EnrollmentClassSpec{Agent: fleetv1alpha1.AgentSpec{Mode: fleetv1alpha1.AgentModeDisabled, DefaultTargetNamespace: "bar"}},
	}
	f.create(f.hub, f.class)
	if err := f.hub.Create(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}}); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	f.create(f.workload, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}})
	f.start()
	t.Cleanup(func() {
		f.asked.setAnswer(nil)
		f.asked.setAfter(nil)
		f.stop()
		// What is left must not be in the way of the tests that follow.
		if err := client.IgnoreNotFound(f.workload.DeleteAllOf(f.ctx, &appsv1alpha1.Application{}, client.InNamespace(f.namespace))); err != nil {
			t.Errorf("cannot delete the Applications: %v", err)
		}
	})
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

// start runs the controller and engages the cluster.
func (f *fixture) start() {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	hub := rest.CopyConfig(hubServer.Config)
	hub.QPS = -1
	f.gate = multicluster.NewGate()
	mgr, err := mcmanager.New(hub, nil, ctrl.Options{
		Scheme: scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, LeaderElection: false,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.registry = prometheus.NewRegistry()
	o := Options{Fleet: f.fleet, Gate: f.gate, Registerer: f.registry, MetricsPerApplication: true, SkipNameValidation: new(true)}
	for _, change := range f.options {
		change(&o)
	}
	if err := o.setDefaults(); err != nil {
		f.t.Fatal(err)
	}
	if f.reconciler, err = setup(mgr, o); err != nil {
		f.t.Fatal(err)
	}
	f.fleet.Set(f.enrolled(connection.StateConnected))
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
}

// enrolled is the cluster as the fleet has it, in a state.
func (f *fixture) enrolled(state connection.State) connection.Cluster {
	key, _ := connection.ParseClusterName(f.cluster)
	return connection.Cluster{
		Name: f.cluster, State: state, Reason: string(state),
		Enrolment: connection.Enrolment{Class: f.class.Name, Object: connection.ObjectReference{
			GroupVersionKind: schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Cluster"},
			Namespace:        key.Namespace, Name: key.Name, UID: types.UID("uid-of-" + key.Name),
		}},
	}
}

// engage connects the cluster, as the provider would.
func (f *fixture) engage() {
	f.t.Helper()
	cfg := rest.CopyConfig(workloadServer.Config)
	cfg.QPS = -1
	cfg.Wrap(f.asked.wrap)
	cfg.Impersonate.UserName = f.user
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
	f.disengage = disengage
}

// restart stops the controller and starts it anew.
func (f *fixture) restart() {
	f.t.Helper()
	f.stop()
	f.start()
}

func (f *fixture) create(c client.Client, objs ...client.Object) {
	f.t.Helper()
	for _, obj := range objs {
		if err := c.Create(f.ctx, obj); err != nil {
			f.t.Fatalf("cannot create %T %q: %v", obj, obj.GetName(), err)
		}
	}
}

func (f *fixture) delete(obj client.Object) {
	f.t.Helper()
	if err := client.IgnoreNotFound(f.workload.Delete(f.ctx, obj)); err != nil {
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
	f.eventually("the controller does not come to rest", func() error {
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
func (f *fixture) edit(obj client.Object, change func()) {
	f.t.Helper()
	f.eventually("editing "+obj.GetName(), func() error {
		if err := f.workload.Get(f.ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		change()
		return f.workload.Update(f.ctx, obj)
	})
}

// served waits until the cluster has the definition of Applications.
func (f *fixture) served() {
	f.t.Helper()
	f.eventually("Applications are served", func() error {
		return f.workload.List(f.ctx, &appsv1alpha1.ApplicationList{}, client.InNamespace(f.namespace))
	})
}

// application creates an Application that selects the label app with its name.
func (f *fixture) application(name string, components map[string]appsv1alpha1.ComponentKind, change ...func(*appsv1alpha1.Application)) *appsv1alpha1.Application {
	f.t.Helper()
	f.served()
	app := &appsv1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name},
		Spec: appsv1alpha1.ApplicationSpec{
			Type: "wordpress", Version: "1.0", Components: components,
			Selector: appsv1alpha1.LabelSelector{MatchLabels: map[string]appsv1alpha1.LabelValue{"app": appsv1alpha1.LabelValue(name)}},
		},
	}
	for _, c := range change {
		c(app)
	}
	f.create(f.workload, app)
	return app
}

// configMap creates a ConfigMap that is a component of an Application.
func (f *fixture) configMap(name, application string, change ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	f.t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: f.member(name, application)}
	for _, c := range change {
		c(cm)
	}
	f.create(f.workload, cm)
	return cm
}

// member is the metadata of a component of an Application.
func (f *fixture) member(name, application string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: f.namespace, Name: name, Labels: map[string]string{"app": application},
		Annotations: map[string]string{appsv1alpha1.ApplicationAnnotation: application},
	}
}

// has waits until an Application is as check wants it.
func (f *fixture) has(app *appsv1alpha1.Application, check func(appsv1alpha1.ApplicationStatus) error) {
	f.t.Helper()
	f.eventually("the status of "+app.Name, func() error {
		if err := f.workload.Get(f.ctx, client.ObjectKeyFromObject(app), app); err != nil {
			return err
		}
		if app.Status.ObservedGeneration != app.Generation {
			return fmt.Errorf("generation %d was not observed", app.Generation)
		}
		if err := check(app.Status); err != nil {
			return fmt.Errorf("%w: %+v", err, app.Status)
		}
		return nil
	})
}

// installed waits until just these are installed.
func (f *fixture) installed(app *appsv1alpha1.Application, names ...string) {
	f.t.Helper()
	f.has(app, func(s appsv1alpha1.ApplicationStatus) error {
		if !slices.Equal(s.Installed, names) {
			return fmt.Errorf("want %q to be installed", names)
		}
		return nil
	})
}

// owned waits until an object is, or is not, owned by an Application, and checks what else it is owned by.
func (f *fixture) owned(obj client.Object, app *appsv1alpha1.Application, want bool) {
	f.t.Helper()
	f.eventually("the owner of "+obj.GetName(), func() error {
		if err := f.workload.Get(f.ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		if got := isOwned(obj, app); got != want {
			return fmt.Errorf("owned by %q: want %t, got %t", app.Name, want, got)
		}
		return nil
	})
}

func isOwned(obj client.Object, app *appsv1alpha1.Application) bool {
	return slices.ContainsFunc(obj.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == app.UID })
}

// condition returns a condition as "Status Reason".
func condition(s appsv1alpha1.ApplicationStatus, conditionType string) string {
	c := meta.FindStatusCondition(s.Conditions, conditionType)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

// component returns what a status says of a component, as "Installed/Health Reason".
func componentOfStatus(s appsv1alpha1.ApplicationStatus, name string) string {
	for _, c := range s.Components {
		if c.Name == name {
			return string(c.Installed) + "/" + string(c.Health) + " " + c.Reason
		}
	}
	return ""
}

// Kinds that the tests use.
var (
	configMaps  = appsv1alpha1.ComponentKind{Version: "v1", Kind: "ConfigMap"}
	services    = appsv1alpha1.ComponentKind{Version: "v1", Kind: "Service"}
	deployments = appsv1alpha1.ComponentKind{Group: "apps", Version: "v1", Kind: "Deployment"}
)

// components are components by name, all of one kind.
func components(kind appsv1alpha1.ComponentKind, names ...string) map[string]appsv1alpha1.ComponentKind {
	out := map[string]appsv1alpha1.ComponentKind{}
	for _, name := range names {
		out[name] = kind
	}
	return out
}

var _ Fleet = &connection.Provider{}

// jsonAnswer is an answer of an API server.
func jsonAnswer(req *http.Request, code int, body string) *http.Response {
	return &http.Response{
		Status: http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: req,
	}
}
