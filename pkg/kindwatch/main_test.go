// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/dynamicclient"
)

var config *rest.Config

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.fuzz").Value.String() != "" {
		// A fuzz test needs no server, and each of its processes would start one, and leave it behind when it is ended.
		os.Exit(m.Run())
	}
	os.Exit(runWithServer(m))
}

func runWithServer(m *testing.M) int {
	env, err := testenv.New()
	if err == nil {
		config, err = testenv.Start(env)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot start the API server:", err)
		return 1
	}
	defer func() { _ = env.Stop() }()
	config.QPS = -1
	return m.Run()
}

var configMaps = Kind{
	GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: "configmaps",
	FieldSelector: "metadata.namespace=default",
}

// recorder keeps the events of a Watcher.
type recorder struct {
	mu     sync.Mutex
	events []Event
}

func (r *recorder) handle(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// seen returns what was reported about an object.
func (r *recorder) seen(name string) []EventType {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []EventType
	for _, e := range r.events {
		if e.Object != nil && e.Object.GetName() == name {
			out = append(out, e.Type)
		}
	}
	return out
}

func (r *recorder) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events)
}

// itemsFor returns the items of what a list has.
func (s *store) itemsFor(objs ...runtime.Object) (items []*Item) {
	for _, obj := range objs {
		if i, ok := s.convert(obj); ok && i.kept() {
			items = append(items, i)
		}
	}
	return items
}

// clients returns the clients of a Watcher.
func clients(tb testing.TB, cfg *rest.Config) (dynamicclient.Objects, dynamicclient.Metadata) {
	tb.Helper()
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	objects, err := dynamicclient.New(cfg, httpClient)
	if err != nil {
		tb.Fatal(err)
	}
	metadata, err := dynamicclient.NewMetadata(cfg, httpClient)
	if err != nil {
		tb.Fatal(err)
	}
	return objects, metadata
}

// start runs a Watcher for the length of a test and returns how to end it earlier.
func start(t *testing.T, cfg *rest.Config, handler func(Event), change ...func(*Options)) (*Watcher, func()) {
	t.Helper()
	dyn, meta := clients(t, cfg)
	o := Options{Client: dyn, MetadataClient: meta, Handler: handler}
	for _, c := range change {
		c(&o)
	}
	w, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Start(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Start: %v", err)
		}
	})
	t.Cleanup(stop)
	return w, stop
}

func testClient(t *testing.T) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(s)
	_ = apiextensionsv1.AddToScheme(s)
	c, err := client.New(config, client.Options{Scheme: s})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func eventually(t *testing.T, what string, fn func() error) {
	t.Helper()
	var last error
	err := testenv.Poll(t.Context(), testenv.Patience, func(context.Context) (bool, error) {
		last = fn()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v (%v)", what, last, err)
	}
}

func inState(w *Watcher, kind Kind, want State) func() error {
	return func() error {
		if got, message := w.State(kind); got != want {
			return fmt.Errorf("want state %s, got %s (%s)", want, got, message)
		}
		return nil
	}
}

// widgets returns a kind of its own for each test, and its definition.
func widgets(t *testing.T, name string) (Kind, *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	group := name + ".example.org"
	kind := Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Widget"}, Resource: "widgets"}
	return kind, &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}},
			}},
		},
	}
}

func widget(kind Kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}}}
	u.SetGroupVersionKind(kind.GroupVersionKind)
	u.SetNamespace("default")
	u.SetName(name)
	return u
}

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

// only selects one kind.
func only(kind Kind) func(schema.GroupKind) bool {
	return func(gk schema.GroupKind) bool { return gk == kind.GroupKind() }
}

// createWhenServed creates an object as soon as its kind is served.
func createWhenServed(t *testing.T, c client.Client, obj client.Object) {
	t.Helper()
	eventually(t, "create "+obj.GetName(), func() error { return c.Create(t.Context(), obj) })
}

func has(w *Watcher, kind Kind, name string) func() error {
	return func() error { _, err := w.Get(kind, key(name)); return err }
}

func hasNot(w *Watcher, kind Kind, name string) func() error {
	return func() error {
		if _, err := w.Get(kind, key(name)); !apierrors.IsNotFound(err) {
			return fmt.Errorf("want NotFound, got %w", errors.Join(err, errors.New("no NotFound")))
		}
		return nil
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// intercepted puts a function between a client and its server.
func intercepted(cfg *rest.Config, f func(*http.Request, http.RoundTripper) (*http.Response, error)) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) { return f(req, next) })
	})
	return cfg
}

// response is what a server could have answered.
func response(req *http.Request, code int, body string) *http.Response {
	return &http.Response{
		StatusCode: code, Request: req, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)),
	}
}

// undefine deletes a definition, and waits until it is gone; see testenv.ReleaseDefinitions.
func undefine(t *testing.T, c client.Client, definition *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	if err := c.Delete(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the definition "+definition.Name+" goes", func() error {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(definition), definition)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, testenv.ReleaseDefinitions(t.Context(), c), errors.New("it is there"))
	})
}
