// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"

	"github.com/masthead-dev/masthead/internal/test/testenv"
)

func newConfig(t *testing.T, h *Honest) *rest.Config {
	t.Helper()
	s, err := StartHonest(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{CAData: s.Authority()}, QPS: -1}
}

func newDynamicClient(t *testing.T, h *Honest) dynamic.Interface {
	t.Helper()
	c, err := dynamic.NewForConfig(newConfig(t, h))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func giants(n int) Collection {
	return Collection{Resource: "namespaces", Count: n, Object: func(i int) map[string]any {
		return map[string]any{"metadata": map[string]any{
			"name": fmt.Sprintf("giant-%05d", i), "labels": map[string]any{"half": []string{"a", "b"}[i%2]},
		}}
	}}
}

var (
	namespacesResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	configMapsResource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	crdResource        = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

func TestHonestListsInPages(t *testing.T) {
	const n = 10_000
	c := newDynamicClient(t, NewHonest(giants(n))).Resource(namespacesResource)
	cases := map[string]struct {
		reason  string
		options metav1.ListOptions
		want    int
		pages   int
	}{
		"Whole":    {"Without a limit everything comes at once, with the two that every cluster has.", metav1.ListOptions{}, n + 2, 1},
		"Pages":    {"The last page has what is left.", metav1.ListOptions{Limit: 500}, n + 2, 21},
		"Labelled": {"A label chooses before pages are cut.", metav1.ListOptions{Limit: 1000, LabelSelector: "half=b"}, n / 2, 6},
		"Named":    {"A field chooses one.", metav1.ListOptions{FieldSelector: "metadata.name=giant-00077"}, 1, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			names, pages := map[string]bool{}, 0
			for {
				list, err := c.List(t.Context(), tc.options)
				if err != nil {
					t.Fatal(err)
				}
				pages++
				for _, o := range list.Items {
					names[o.GetName()] = true
				}
				if tc.options.Continue = list.GetContinue(); tc.options.Continue == "" {
					break
				}
			}
			if len(names) != tc.want || pages > tc.pages {
				t.Errorf("%s want %d objects in %d pages, got %d in %d", tc.reason, tc.want, tc.pages, len(names), pages)
			}
		})
	}
}

// TestHonestFillsInformers lets client-go's own informer list a giant, as a stream or in pages as it prefers, and watch
// it.
func TestHonestFillsInformers(t *testing.T) {
	const n = 3000
	h := NewHonest(giants(n))
	c, err := metadata.NewForConfig(newConfig(t, h))
	if err != nil {
		t.Fatal(err)
	}
	informer := metadatainformer.NewFilteredMetadataInformer(c, namespacesResource, "", 0, nil, nil).Informer()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); informer.RunWithContext(ctx) }()
	defer func() { cancel(); <-done }()
	holds := func(want int) {
		t.Helper()
		err := testenv.Poll(t.Context(), testenv.Patience, func(context.Context) (bool, error) {
			return informer.HasSynced() && len(informer.GetStore().ListKeys()) == want, nil
		})
		if err != nil {
			t.Fatalf("want %d objects, got %d", want, len(informer.GetStore().ListKeys()))
		}
	}
	holds(n + 2)
	if err := h.Put("", "namespaces", map[string]any{"metadata": map[string]any{"name": "late"}}); err != nil {
		t.Fatal(err)
	}
	holds(n + 3)
}

func configMap(name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "default"},
		"data": map[string]any{"k": value},
	}}
}

func TestHonestKeepsWhatIsWritten(t *testing.T) {
	h := NewHonest()
	c := newDynamicClient(t, h).Resource(configMapsResource).Namespace("default")
	ctx := t.Context()
	w, err := c.Watch(ctx, metav1.ListOptions{ResourceVersion: "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	next := func(want watch.EventType, value string) {
		t.Helper()
		e := <-w.ResultChan()
		u, _ := e.Object.(*unstructured.Unstructured)
		if e.Type != want || u == nil {
			t.Fatalf("want %s, got %s %v", want, e.Type, e.Object)
		}
		if got, _, _ := unstructured.NestedString(u.Object, "data", "k"); got != value {
			t.Fatalf("want the value %q, got %q", value, got)
		}
	}
	made, err := c.Create(ctx, configMap("a", "1"), metav1.CreateOptions{})
	if err != nil || made.GetUID() == "" || made.GetResourceVersion() == "" || made.GetCreationTimestamp() == (metav1.Time{}) {
		t.Fatalf("got %v, %v", made, err)
	}
	next(watch.Added, "1")
	if _, err := c.Create(ctx, configMap("a", "1"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("want AlreadyExists, got %v", err)
	}
	changed, err := c.Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"k":"2"},"metadata":{"finalizers":["x/y"]}}`), metav1.PatchOptions{})
	if err != nil || changed.GetUID() != made.GetUID() {
		t.Fatalf("got %v, %v", changed, err)
	}
	next(watch.Modified, "2")
	if _, err := c.Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("want a conflict with an old version, got %v", err)
	}
	if same, err := c.Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"k":"2"}}`), metav1.PatchOptions{}); err != nil ||
		same.GetResourceVersion() != changed.GetResourceVersion() {
		t.Errorf("a patch that changes nothing made a version: %v", err)
	}
	if err := c.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	next(watch.Modified, "2")
	if _, err := c.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	next(watch.Deleted, "2")
	if _, err := c.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("want NotFound, got %v", err)
	}
	if _, err := c.Apply(ctx, "b", configMap("b", "3"), metav1.ApplyOptions{FieldManager: "test"}); err != nil {
		t.Error(err)
	}
	next(watch.Added, "3")
	if n := h.Objects("", "configmaps"); n != 1 {
		t.Errorf("want one object, got %d", n)
	}
}

func definition(i int) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"name": fmt.Sprintf("things.g%d.example.org", i)},
		"spec": map[string]any{
			"group": fmt.Sprintf("g%d.example.org", i), "scope": "Namespaced",
			"names":    map[string]any{"plural": "things", "kind": "Thing"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true}},
		},
	}
}

func TestHonestServesWhatIsDefined(t *testing.T) {
	h := NewHonest(Collection{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Count: 300, Object: definition})
	config := newConfig(t, h)
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	serves := func(i int) bool {
		list, err := disco.ServerResourcesForGroupVersion(fmt.Sprintf("g%d.example.org/v1", i))
		return err == nil && len(list.APIResources) == 2 && list.APIResources[0].Kind == "Thing"
	}
	if !serves(0) || !serves(299) || serves(300) {
		t.Error("want the kinds of the collection to be served, and no other")
	}
	u := &unstructured.Unstructured{Object: definition(300)}
	u.SetAPIVersion("apiextensions.k8s.io/v1")
	u.SetKind("CustomResourceDefinition")
	got, err := c.Resource(crdResource).Create(t.Context(), u, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if conditions, _, _ := unstructured.NestedSlice(got.Object, "status", "conditions"); len(conditions) != 2 || !serves(300) {
		t.Errorf("want a kind that is created to be established and served, got %v", conditions)
	}
	groups, err := disco.ServerGroups()
	if err != nil || len(groups.Groups) < 301 {
		t.Errorf("want all groups to be listed, got %v, %v", groups, err)
	}
	if err := c.Resource(crdResource).Delete(t.Context(), "things.g300.example.org", metav1.DeleteOptions{}); err != nil || serves(300) {
		t.Errorf("want a kind that is deleted not to be served: %v", err)
	}
}

// TestHonestHoldsNoMoreThanIsSent lists objects of 1 MiB, which are created one at a time.
func TestHonestHoldsNoMoreThanIsSent(t *testing.T) {
	var made atomic.Int64
	h := NewHonest(Collection{Resource: "configmaps", Count: 1 << 30, Object: func(i int) map[string]any {
		made.Add(1)
		return map[string]any{"metadata": map[string]any{"name": fmt.Sprintf("big-%d", i), "namespace": "default"}}
	}})
	list, err := newDynamicClient(t, h).Resource(configMapsResource).List(t.Context(), metav1.ListOptions{Limit: 3})
	if err != nil || len(list.Items) != 3 || list.GetContinue() != "3" {
		t.Fatalf("got %v", err)
	}
	if n := made.Load(); n > 4 {
		t.Errorf("want no more objects made than are sent, got %d", n)
	}
}

func TestReviewsAllowEverything(t *testing.T) {
	s, err := StartHonest(t.Context(), NewHonest())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := client(t, s)
	defer c.CloseIdleConnections()
	for path, want := range map[string]string{
		"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": `"allowed":true`,
		"/apis/authorization.k8s.io/v1/selfsubjectrulesreviews":  `"resourceRules"`,
		"/apis/authentication.k8s.io/v1/selfsubjectreviews":      `"username":"` + username + `"`,
	} {
		code, got, _, err := ask(t.Context(), c, s, http.MethodPost, path, `{"kind":"Review"}`)
		if err != nil || code != http.StatusCreated || !strings.Contains(got, want) {
			t.Errorf("%s: want %s, got %d %s %v", path, want, code, got, err)
		}
	}
}
