// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mchandler "sigs.k8s.io/multicluster-runtime/pkg/handler"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

// enqueueObject is the handler that most tests use. Its queue does not pass on priorities.
var enqueueObject mchandler.TypedEventHandlerFunc[client.Object, mcreconcile.Request] = mchandler.EnqueueRequestForObject

// blackHole returns the address of a server that accepts connections and never answers.
func blackHole(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var conns []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
		for _, c := range conns {
			_ = c.Close()
		}
	})
	return "http://" + l.Addr().String()
}

// fakeAPI is an API server that has ConfigMaps only, at first one with the name "a".
type fakeAPI struct {
	host string
}

func newFakeAPI(t *testing.T) *fakeAPI {
	t.Helper()
	f := &fakeAPI{}
	s := httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	f.host = s.URL
	return f
}

func configMapJSON(name, version string) string {
	return `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"` + name + `","namespace":"d","uid":"u","resourceVersion":"` +
		version + `"}}`
}

func (f *fakeAPI) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path != "/api/v1/configmaps" {
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: 404})
		return
	}
	write := func(s string) {
		_, _ = w.Write([]byte(s + "\n"))
		w.(http.Flusher).Flush()
	}
	if r.URL.Query().Get("watch") != "true" {
		write(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[` + configMapJSON("a", "1") + `]}`)
		return
	}
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		write(`{"type":"ADDED","object":` + configMapJSON("a", "1") + `}`)
		write(`{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"1",` +
			`"annotations":{"k8s.io/initial-events-end":"true"}}}}`)
	}
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// configMapsOnly is a RESTMapper that knows no kind but ConfigMap.
func configMapsOnly(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	return m, nil
}

// newCluster returns a cluster with ConfigMaps only, which is not started.
func newCluster(t *testing.T, host string) cluster.Cluster {
	t.Helper()
	cl, err := cluster.New(&rest.Config{Host: host}, func(o *cluster.Options) {
		o.Scheme = scheme.Scheme
		o.MapperProvider = configMapsOnly
	})
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

// start starts a cluster, and stops it at the end of the test.
func start(t *testing.T, cl cluster.Cluster) cluster.Cluster {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := cl.Start(ctx); err != nil {
			t.Errorf("cannot start a cluster: %v", err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return cl
}

// newManager returns a manager whose hub receives no requests.
func newManager(t *testing.T, change ...func(*manager.Options)) mcmanager.Manager {
	t.Helper()
	o := manager.Options{
		Scheme:                 scheme.Scheme,
		Logger:                 logr.Discard(),
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		MapperProvider:         configMapsOnly,
		Controller:             config.Controller{SkipNameValidation: new(true)},
	}
	for _, f := range change {
		f(&o)
	}
	m, err := mcmanager.New(&rest.Config{Host: "http://127.0.0.1:0"}, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// run starts a manager, stops it at the end of the test, and returns what Start returns.
func run(t *testing.T, m mcmanager.Manager) <-chan error {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		done <- m.Start(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-finished
	})
	return done
}

// recorder is a reconciler that sends the requests it is called for.
type recorder chan mcreconcile.Request

func newRecorder() recorder { return make(recorder, 1000) }

func (r recorder) Reconcile(_ context.Context, req mcreconcile.Request) (reconcile.Result, error) {
	r <- req
	return reconcile.Result{}, nil
}

// await waits until the recorder has been called for a request.
func (r recorder) await(t *testing.T, want mcreconcile.Request) {
	t.Helper()
	eventually(t, want.String()+" is not reconciled", func() bool {
		for {
			select {
			case got := <-r:
				if got == want {
					return true
				}
			default:
				return false
			}
		}
	})
}

// fakeSource is a source that records the contexts with which it was started. Its Instances record them in it, too.
type fakeSource struct {
	*Instances[mcreconcile.Request, *fakeInstance]

	contextsMu sync.Mutex
	contexts   map[mcr.ClusterName][]context.Context
	syncs      chan struct{}
	failures   atomic.Int64
}

func newFakeSource() *fakeSource {
	s := &fakeSource{contexts: map[mcr.ClusterName][]context.Context{}, syncs: make(chan struct{})}
	close(s.syncs)
	s.Instances = NewInstances(InstancesOptions[mcreconcile.Request, *fakeInstance]{
		What: "fakes",
		New: func(name mcr.ClusterName, _ cluster.Cluster, _ workqueue.TypedRateLimitingInterface[mcreconcile.Request]) (*fakeInstance, error) {
			if s.failures.Add(-1) >= 0 {
				return nil, context.DeadlineExceeded
			}
			return &fakeInstance{fakeSource: s, name: name}, nil
		},
		Added:   func(mcr.ClusterName, *fakeInstance, *fakeInstance, bool) {},
		Removed: func(mcr.ClusterName) {},
	})
	return s
}

// engagements returns the number of engagements.
func (s *fakeSource) engagements() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byCluster)
}

func (s *fakeSource) ForCluster(name mcr.ClusterName, _ cluster.Cluster) (source.TypedSource[mcreconcile.Request], bool, error) {
	return &fakeClusterSource{fakeSource: s, name: name}, true, nil
}

// started returns the contexts with which the source was started for a cluster.
func (s *fakeSource) started(name mcr.ClusterName) []context.Context {
	s.contextsMu.Lock()
	defer s.contextsMu.Unlock()
	return append([]context.Context(nil), s.contexts[name]...)
}

type fakeClusterSource struct {
	*fakeSource
	name mcr.ClusterName
}

func (s *fakeClusterSource) Start(ctx context.Context, _ workqueue.TypedRateLimitingInterface[mcreconcile.Request]) error {
	s.contextsMu.Lock()
	defer s.contextsMu.Unlock()
	s.contexts[s.name] = append(s.contexts[s.name], ctx)
	return nil
}

type fakeInstance fakeClusterSource

func (i *fakeInstance) Start(ctx context.Context) error {
	_ = (*fakeClusterSource)(i).Start(ctx, nil)
	<-ctx.Done()
	return nil
}

func (i *fakeInstance) WaitForSync(ctx context.Context) error {
	select {
	case <-i.syncs:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fakeCluster is an instance of a cluster whose methods are not called.
type fakeCluster struct {
	cluster.Cluster
	_ int // Instances of a struct without a size may have the same address.
}

// proxy returns the address of a server that is unavailable until up is closed, and then passes everything on.
func proxy(t *testing.T, host string, up <-chan struct{}) string {
	t.Helper()
	target, err := url.Parse(host)
	if err != nil {
		t.Fatal(err)
	}
	p := httputil.NewSingleHostReverseProxy(target)
	p.FlushInterval = -1
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-up:
			p.ServeHTTP(w, r)
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}
