// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package manyclusters

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/test/bench/auditlog"
)

var servers controllertest.Servers

// server is the one API server of all tests.
var server = sync.OnceValues(func() (*envtest.Environment, error) { return servers.Start() })

func TestMain(m *testing.M) { servers.Run(m) }

func start(t *testing.T) (backing client.Client, p *Proxy, clusters []client.WithWatch) {
	t.Helper()
	env, err := server()
	if err != nil {
		t.Fatal(err)
	}
	backing = controllertest.NewClient(t, env.Config, controllertest.Scheme())
	if p, err = Start(t.Context(), env.Config, 2); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	for _, name := range []string{Name(0), Name(1)} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace(name, "default")}}
		if err := backing.Create(t.Context(), namespace); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
		if err := backing.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(namespace.Name)); err != nil {
			t.Fatal(err)
		}
		c, err := client.NewWithWatch(p.Config(name), client.Options{Scheme: controllertest.Scheme()})
		if err != nil {
			t.Fatal(err)
		}
		clusters = append(clusters, c)
	}
	return backing, p, clusters
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// next returns the next event that is not a bookmark.
func next(t *testing.T, w watch.Interface) string {
	t.Helper()
	for {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				t.Fatal("The watch has ended.")
			}
			if o, ok := e.Object.(metav1.Object); ok && e.Type != watch.Bookmark {
				return string(e.Type) + " " + o.GetNamespace() + "/" + o.GetName()
			}
		case <-time.After(10 * time.Second):
			t.Fatal("An event does not arrive.")
		}
	}
}

func TestClustersAreSeparate(t *testing.T) {
	_, p, clusters := start(t)
	uids := map[string]bool{}
	var watches []watch.Interface
	for i, c := range clusters {
		kubeSystem := &corev1.Namespace{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, kubeSystem); err != nil {
			t.Fatal(err)
		}
		uids[string(kubeSystem.UID)] = true
		list := &corev1.NamespaceList{}
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, n := range list.Items {
			names = append(names, n.Name)
			uids[string(n.UID)] = true
		}
		if diff := cmp.Diff([]string{"kube-system", "default"}, names); diff != "" {
			t.Errorf("A cluster has its namespaces.\n-want, +got:\n%s", diff)
		}
		w, err := c.Watch(t.Context(), &corev1.ConfigMapList{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		watches = append(watches, w)
		if err := c.Create(t.Context(), configMap([]string{"first", "second"}[i])); err != nil {
			t.Fatal(err)
		}
	}
	if len(uids) != 4 {
		t.Errorf("Each cluster has UIDs of its own, the same for a get and a list: got %v", uids)
	}
	for i, c := range clusters {
		name := []string{"first", "second"}[i]
		if err := c.Delete(t.Context(), configMap(name)); err != nil {
			t.Fatal(err)
		}
		got := []string{next(t, watches[i]), next(t, watches[i])}
		if diff := cmp.Diff([]string{"ADDED default/" + name, "DELETED default/" + name}, got); diff != "" {
			t.Errorf("A watch delivers what happens in its cluster.\n-want, +got:\n%s", diff)
		}
	}
	if n := p.Watches(Name(0)); n != 1 {
		t.Errorf("want one watch counted, got %d", n)
	}
	counts := p.Requests()
	created := counts[auditlog.Request{Verb: "create", Resource: "configmaps"}]
	if created != 2 || counts.Writes(auditlog.Work) != 4 {
		t.Errorf("Requests are counted: got %s", counts)
	}
}

func TestWatchGoesOn(t *testing.T) {
	_, _, clusters := start(t)
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	if err := clusters[0].List(t.Context(), list, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"other", "own"} {
		if err := clusters[1-i].Create(t.Context(), configMap(name)); err != nil {
			t.Fatal(err)
		}
	}
	// A client that has listed continues after its list; one that has not gets what there is.
	continued := &client.ListOptions{Namespace: "default", Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}}
	yes := true
	complete := &client.ListOptions{Raw: &metav1.ListOptions{
		SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
	}}
	for name, options := range map[string]*client.ListOptions{"continued": continued, "complete": complete} {
		w, err := clusters[0].Watch(t.Context(), list.DeepCopy(), options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		if got := next(t, w); got != "ADDED default/own" {
			t.Errorf("The %s watch delivers what its cluster has: got %s", name, got)
		}
	}
	old := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "1"}}
	if _, err := clusters[0].Watch(t.Context(), list, old); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("A watch that would miss events is refused: got %v", err)
	}
}

func TestErrorsArePassedOn(t *testing.T) {
	backing, p, clusters := start(t)
	missing := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	err := clusters[0].Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "missing"}, missing)
	if !apierrors.IsNotFound(err) {
		t.Errorf("What is not there is not found: got %v", err)
	}
	existing := configMap("x")
	existing.Namespace = Namespace(Name(0), "default")
	if err := backing.Create(t.Context(), existing); err != nil {
		t.Fatal(err)
	}
	err = clusters[0].Create(t.Context(), configMap("x"))
	if !apierrors.IsAlreadyExists(err) || strings.Contains(err.Error(), Name(0)) {
		t.Errorf("What the API server refuses is refused, in the words of the cluster: got %v", err)
	}
	unserved, err := dynamic.NewForConfig(p.Config(Name(0)))
	if err != nil {
		t.Fatal(err)
	}
	resource := schema.GroupVersionResource{Group: "unknown.example.com", Version: "v1", Resource: "things"}
	things := unserved.Resource(resource)
	if _, err := things.List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("A kind that is not served cannot be listed: got %v", err)
	}
	if _, err := things.Watch(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("A kind that is not served cannot be watched: got %v", err)
	}
	config := p.Config(Name(0))
	config.BearerToken = p.Config(Name(1)).BearerToken
	c, err := client.New(config, client.Options{Scheme: controllertest.Scheme()})
	if err == nil {
		err = c.List(t.Context(), &corev1.NamespaceList{})
	}
	if !apierrors.IsUnauthorized(err) {
		t.Errorf("The token of another cluster is refused: got %v", err)
	}
}

// TestAnswersKeepTheirType: an API server answers /readyz in plain text. A manager refuses JSON that is none.
func TestAnswersKeepTheirType(t *testing.T) {
	_, p, _ := start(t)
	config := p.Config(Name(0))
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/readyz": "text/plain; charset=utf-8", "/version": "application/json"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || got != want {
			t.Errorf("%s: got %s with %q, want %q", path, resp.Status, got, want)
		}
	}
}
