// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection/connectiontest"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	code := m.Run()
	for _, e := range servers.all {
		_ = e.env.Stop()
	}
	os.Exit(code)
}

// servers are the real API servers of this package's tests, started when first requested.
var servers struct {
	mu  sync.Mutex
	all []*apiServer
}

// apiServer is a real API server with etcd.
type apiServer struct {
	env    *envtest.Environment
	cfg    *rest.Config
	client kubernetes.Interface
	uid    string
}

// realServer returns the nth real API server.
func realServer(t *testing.T, n int) *apiServer {
	t.Helper()
	servers.mu.Lock()
	defer servers.mu.Unlock()
	for len(servers.all) <= n {
		servers.all = append(servers.all, startServer(t))
	}
	return servers.all[n]
}

// startServer starts an API server, and gives a ServiceAccount of it all rights.
func startServer(t *testing.T) *apiServer {
	t.Helper()
	env, err := testenv.New()
	if err != nil {
		t.Fatal(err)
	}
	usable := false
	defer func() {
		if !usable { // A start that fails half way may leave etcd running, and TestMain does not know of this server.
			_ = env.Stop()
		}
	}()
	cfg, err := testenv.Start(env)
	if err != nil {
		t.Fatalf("cannot start an API server: %v", err)
	}
	cfg.QPS = -1
	s := &apiServer{env: env, cfg: cfg, client: kubernetes.NewForConfigOrDie(cfg)}
	ctx := t.Context()
	connectiontest.Eventually(t, "kube-system exists", func() bool {
		ns, err := s.client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err == nil {
			s.uid = string(ns.UID)
		}
		return err == nil
	})
	_, err = s.client.CoreV1().ServiceAccounts("default").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "masthead"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "masthead"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "masthead"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	usable = true
	return s
}

// token returns a new token of a ServiceAccount that may do everything.
func (s *apiServer) token(t *testing.T) string {
	t.Helper()
	r, err := s.client.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "masthead",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(3600))}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("cannot create a token: %v", err)
	}
	return r.Status.Token
}

func (s *apiServer) createObject(t *testing.T, name string) {
	t.Helper()
	_, err := s.client.CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.client.CoreV1().ServiceAccounts("default").Delete(context.Background(), name, metav1.DeleteOptions{})
	})
}

// fakeUID is the UID of the fake API server.
const fakeUID = "0f0f0f0f-b8de-4056-8188-02a4f43e3f73"

// frontend is a proxy before a real API server, with its own port and certificate. It counts requests, and fails as a
// test specifies.
type frontend struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
	accepted map[string]bool // tokens; nil accepts what the API server accepts
	hang     chan struct{}   // while not nil, requests that arrive hang until it is closed
	answer   func(w http.ResponseWriter, r *http.Request) bool
}

// newFrontend returns a proxy before a real API server, or before a fake one if s is nil.
func newFrontend(t *testing.T, s *apiServer) *frontend {
	t.Helper()
	f := &frontend{}
	proxy := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fakeAPI(w, r, "", fakeUID) }))
	if s != nil {
		target, err := url.Parse(s.cfg.Host)
		if err != nil {
			t.Fatal(err)
		}
		if target.Scheme == "" || target.Host == "" {
			target = &url.URL{Scheme: "https", Host: s.cfg.Host}
		}
		transport, err := rest.TransportFor(&rest.Config{Host: s.cfg.Host, TLSClientConfig: rest.TLSClientConfig{CAData: s.cfg.CAData}})
		if err != nil {
			t.Fatal(err)
		}
		proxy = &httputil.ReverseProxy{
			Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
			Transport:     transport,
			FlushInterval: -1,
			ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		}
	}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.intercept(w, r) {
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	f.EnableHTTP2 = true
	f.Config.ErrorLog = nil
	f.StartTLS()
	t.Cleanup(func() {
		f.setHang(false)
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

func (f *frontend) intercept(w http.ResponseWriter, r *http.Request) bool {
	f.mu.Lock()
	line := r.Method + " " + r.URL.Path
	if r.URL.Query().Get("watch") != "" {
		line = "WATCH " + r.URL.Path
	}
	f.requests = append(f.requests, line)
	accepted, hang, answer := f.accepted, f.hang, f.answer
	f.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-r.Context().Done():
			return true
		}
	}
	if accepted != nil && !accepted[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")] {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}`))
		return true
	}
	return answer != nil && answer(w, r)
}

func (f *frontend) accept(tokens ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.accepted = map[string]bool{}
	for _, t := range tokens {
		f.accepted[t] = true
	}
}

func (f *frontend) setHang(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case on && f.hang == nil:
		f.hang = make(chan struct{})
	case !on && f.hang != nil:
		close(f.hang)
		f.hang = nil
	}
}

func (f *frontend) setAnswer(fn func(w http.ResponseWriter, r *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = fn
}

// count returns how many requests matched.
func (f *frontend) count(match func(line string) bool) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, l := range f.requests {
		if match(l) {
			n++
		}
	}
	return n
}

// watchRequests counts lists and watches of the kind that the test controller watches.
func (f *frontend) watchRequests() int {
	return f.count(func(l string) bool {
		return strings.HasSuffix(l, "/serviceaccounts") && (strings.HasPrefix(l, "GET ") || strings.HasPrefix(l, "WATCH "))
	})
}

func (f *frontend) kubeconfig(t *testing.T, token string) []byte {
	t.Helper()
	return connectiontest.Kubeconfig(t, f.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw}), token)
}

// fakeSource is a source whose hub is a map.
type fakeSource struct {
	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[Key]
	entries map[types.NamespacedName]*entry
	version int
}

type entry struct {
	Enrolment
	kubeconfig []byte
	// unenrolled: the object exists, without the label. unreadable: the hub does not answer.
	unenrolled, unreadable bool
	// reads counts how often the kubeconfig was read.
	reads int
}

func newFakeSource() *fakeSource { return &fakeSource{entries: map[types.NamespacedName]*entry{}} }

func (*fakeSource) Name() string { return "fake" }

func (s *fakeSource) Describe(_ context.Context, nn types.NamespacedName) (*Enrolment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[nn]
	if !ok || e.unenrolled {
		return nil, ErrNotEnrolled
	}
	out := e.Enrolment
	return &out, nil
}

func (s *fakeSource) Kubeconfig(_ context.Context, e *Enrolment) (Kubeconfig, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	got, ok := s.entries[types.NamespacedName{Namespace: e.Object.Namespace, Name: e.Object.Name}]
	if !ok || got.kubeconfig == nil {
		return Kubeconfig{}, ErrNoCredentials
	}
	got.reads++
	if got.unreadable {
		return Kubeconfig{}, errors.New("the hub does not answer")
	}
	return Kubeconfig{Data: got.kubeconfig, SecretKey: SecretKey{Namespace: e.Object.Namespace, Name: e.Object.Name, Key: "value"}}, nil
}

// with reads or changes an entry, without notifying the provider.
func (s *fakeSource) with(name string, fn func(*entry)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn(s.entries[nn(name)])
}

func (s *fakeSource) Watches(cluster.Cluster) ([]source.TypedSource[Key], error) {
	return []source.TypedSource[Key]{source.TypedFunc[Key](func(_ context.Context, q workqueue.TypedRateLimitingInterface[Key]) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.queue = q
		for nn := range s.entries {
			q.Add(NewKey("fake", nn))
		}
		return nil
	})}, nil
}

// nn is the key of an object in the namespace ns, or in the namespace that the name begins with: "other/name".
func nn(name string) types.NamespacedName {
	if namespace, name, ok := strings.Cut(name, "/"); ok {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	return types.NamespacedName{Namespace: "ns", Name: name}
}

func clusterName(name string) mcr.ClusterName { return NewKey("fake", nn(name)).ClusterName() }

// set enrols an object, or changes it. setQuietly does so without notifying the provider.
func (s *fakeSource) set(name string, kubeconfig []byte, change ...func(*Enrolment)) {
	s.setQuietly(name, kubeconfig, func(e *Enrolment) {
		s.version++
		e.CredentialsVersion = fmt.Sprint(s.version)
		for _, c := range change {
			c(e)
		}
	})
	s.wake(name)
}

func (s *fakeSource) setQuietly(name string, kubeconfig []byte, change ...func(*Enrolment)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[nn(name)]
	if !ok {
		e = &entry{Enrolment: Enrolment{
			Object: ObjectReference{Namespace: nn(name).Namespace, Name: nn(name).Name, UID: types.UID("object-" + name)},
			Class:  "default", Ready: true, Secret: "Secret of the test",
		}}
		s.entries[nn(name)] = e
	}
	e.kubeconfig = kubeconfig
	for _, c := range change {
		c(&e.Enrolment)
	}
}

// change changes an object that is already enrolled.
func (s *fakeSource) change(name string, change func(*Enrolment)) {
	s.mu.Lock()
	change(&s.entries[nn(name)].Enrolment)
	s.mu.Unlock()
	s.wake(name)
}

func (s *fakeSource) remove(name string) {
	s.mu.Lock()
	delete(s.entries, nn(name))
	s.mu.Unlock()
	s.wake(name)
}

func (s *fakeSource) wake(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue != nil {
		s.queue.Add(NewKey("fake", nn(name)))
	}
}

// recorder keeps events.
type recorder struct {
	mu     sync.Mutex
	events []string
}

func (r *recorder) Eventf(regarding, _ kruntime.Object, eventType, reason, _, note string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, regarding.(*corev1.ObjectReference).Name+" "+eventType+" "+reason+" "+fmt.Sprintf(note, args...))
}

func (r *recorder) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.events...)
}

// harness is a manager with a Provider and a controller that watches ServiceAccounts in every cluster.
type harness struct {
	*Provider
	source   *fakeSource
	gate     *multicluster.Gate
	events   *recorder
	registry *prometheus.Registry
	requests multicluster.EventQueue[mcreconcile.Request]

	mu         sync.Mutex
	reconciled map[string]int // "cluster object"
	block      chan struct{}  // while not nil, reconciles of the blocked object wait for it
	blockedOne string         // the name of that object; others of the same server must not take its worker
	waited     bool           // whether a reconcile waited
	engaged    []engagement
	before     func() // called before each reconcile, if set

	stop func()
}

// engagement is one call of Engage.
type engagement struct {
	ctx  context.Context
	name mcr.ClusterName
	cl   cluster.Cluster
}

// Engage records engaged clusters.
func (h *harness) Engage(ctx context.Context, name mcr.ClusterName, cl cluster.Cluster) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.engaged = append(h.engaged, engagement{ctx, name, cl})
	return nil
}

func (*harness) Start(ctx context.Context) error { <-ctx.Done(); return nil }

type runnableAware struct{ *harness }

func (r runnableAware) Start(ctx context.Context) error { return r.harness.Start(ctx) }

func (h *harness) engagements(name string) []engagement {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []engagement
	for _, e := range h.engaged {
		if e.name == clusterName(name) {
			out = append(out, e)
		}
	}
	return out
}

func (h *harness) count(clusterAndObject string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reconciled[clusterAndObject]
}

// newHarness starts a manager with short intervals. The time-out of a probe is long: on a busy machine a healthy API
// server can be slow, and must not count as unhealthy. A test whose API server never answers sets a short one.
func newHarness(t testing.TB, src *fakeSource, change ...func(*Options)) *harness { //nolint:thelper // Benchmarks use it, too.
	t.Helper()
	return newHarnessWith(t, src, func(*Provider) {}, change...)
}

// newHarnessWith calls prepare with the Provider before the manager starts.
func newHarnessWith(t testing.TB, src *fakeSource, prepare func(*Provider), change ...func(*Options)) *harness { //nolint:thelper // Benchmarks use it, too.
	t.Helper()
	h := &harness{
		source: src, gate: multicluster.NewGate(), events: &recorder{}, registry: prometheus.NewRegistry(),
		reconciled: map[string]int{},
	}
	o := Options{
		Sources: []Source{src}, Gate: h.gate, HubUID: "the-hub", Recorder: h.events, Registerer: h.registry,
		Credentials:             credentials.Options{AllowLoopback: true},
		MaxConcurrentReconciles: minConcurrentReconciles,
		ProbeInterval:           200 * time.Millisecond, ProbeTimeout: 20 * time.Second, ProbeFailureThreshold: 3,
		BackoffBase: 20 * time.Millisecond, BackoffMax: 200 * time.Millisecond,
		NotReadyGracePeriod: 500 * time.Millisecond, DrainTimeout: 5 * time.Second, HandoverTimeout: 20 * time.Second,
		QPS: 200, Burst: 400,
	}
	for _, c := range change {
		c(&o)
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	h.Provider = p
	prepare(p)
	mgr, err := ctrl.NewManager(&rest.Config{Host: "https://127.0.0.1:1"}, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
		GracefulShutdownTimeout: new(30 * time.Second),
	})
	if err != nil {
		t.Fatal(err)
	}
	mc, err := mcmanager.WithMultiCluster(mgr, p)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.SetupWithManager(mc); err != nil {
		t.Fatal(err)
	}
	c, err := multicluster.NewController[mcreconcile.Request]("test", mc, multicluster.ControllerOptions[mcreconcile.Request]{
		Reconciler: reconcile.TypedFunc[mcreconcile.Request](h.reconcileRequest), Clusters: watchAccounts(), Gate: h.gate,
		MaxConcurrentReconciles: 4, SkipNameValidation: new(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Watch(&h.requests); err != nil {
		t.Fatal(err)
	}
	if err := mc.Add(runnableAware{h}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mc.Start(ctx) }()
	h.stop = sync.OnceFunc(func() {
		h.unblock()
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the manager ended with an error: %v", err)
			}
		case <-time.After(connectiontest.Patience):
			t.Error("the manager did not stop")
		}
	})
	t.Cleanup(h.stop)
	return h
}

// serviceAccounts is the kind that the test controller watches.
var serviceAccounts = kindwatch.Kind{
	GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ServiceAccount"), Resource: "serviceaccounts",
}

// watchAccounts returns Instances that watch ServiceAccounts in every cluster.
func watchAccounts() *multicluster.Instances[mcreconcile.Request, *kindwatch.Watcher] {
	return multicluster.NewInstances(multicluster.InstancesOptions[mcreconcile.Request, *kindwatch.Watcher]{
		What: "accounts", Removed: func(mcr.ClusterName) {},
		New: func(
			name mcr.ClusterName, cl cluster.Cluster, q workqueue.TypedRateLimitingInterface[mcreconcile.Request],
		) (*kindwatch.Watcher, error) {
			o, err := multicluster.WatchOptions(cl)
			if err != nil {
				return nil, err
			}
			o.Handler = func(e kindwatch.Event) {
				if e.Object != nil {
					q.Add(mcreconcile.Request{ClusterName: name, Request: reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)}})
				}
			}
			w, err := kindwatch.New(o)
			if err == nil {
				w.Set("test", serviceAccounts)
			}
			return w, err
		},
	})
}

// blockObject makes every reconcile of an object wait until unblock.
func (h *harness) blockObject(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.block, h.blockedOne = make(chan struct{}), name
}

func (h *harness) unblock() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.block != nil {
		close(h.block)
		h.block = nil
	}
}

// beforeReconcile calls fn before each reconcile.
func (h *harness) beforeReconcile(fn func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.before = fn
}

func (h *harness) reconcileRequest(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
	h.mu.Lock()
	block, before := h.block, h.before
	if req.Name != h.blockedOne {
		block = nil
	}
	h.waited = h.waited || block != nil
	h.mu.Unlock()
	if before != nil {
		before()
	}
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
		}
	}
	if _, err := h.Get(ctx, req.ClusterName); err != nil {
		return reconcile.Result{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reconciled[string(req.ClusterName)+" "+req.Name]++
	return reconcile.Result{}, nil
}

func (h *harness) state(name string) (State, string) {
	c, _ := h.Lookup(clusterName(name))
	return c.State, c.Reason
}

// waitFor waits until a cluster is in a state for a reason; an empty reason matches any.
func (h *harness) waitFor(t *testing.T, name string, s State, reason string) {
	t.Helper()
	connectiontest.Eventually(t, fmt.Sprintf("%s is %s %s", name, s, reason), func() bool {
		state, r := h.state(name)
		return state == s && (reason == "" || r == reason)
	}, func() any {
		c, _ := h.Lookup(clusterName(name))
		return fmt.Sprintf("%s %s %q", c.State, c.Reason, c.Message)
	})
}

func (h *harness) waitReconciled(t *testing.T, name, object string) {
	t.Helper()
	connectiontest.Eventually(t, object+" of "+name+" is reconciled", func() bool { return h.count(string(clusterName(name))+" "+object) > 0 })
}
