// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestResolveOnARealServer has built-in kinds, and one that comes and goes.
func TestResolveOnARealServer(t *testing.T) {
	c := testClient(t)
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	r := NewResolver(ResolverOptions{Client: disco})
	for _, want := range []Kind{
		{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: "configmaps"},
		{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Resource: "namespaces", ClusterScoped: true, StatusSubresource: true},
		{GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}, Resource: "statefulsets", StatusSubresource: true},
		{GroupVersionKind: schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}, Resource: "horizontalpodautoscalers", StatusSubresource: true},
	} {
		got, err := r.Resolve(t.Context(), want.GroupVersionKind)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("(-want +got):\n%s%v", diff, err)
		}
	}
	for _, gvk := range []schema.GroupVersionKind{
		{Group: "core", Version: "v1", Kind: "Service"}, {Version: "v2", Kind: "Service"}, {Version: "v1", Kind: "service"},
		{Version: "v1", Kind: "Eviction"}, {Group: "authentication.k8s.io", Version: "v1", Kind: "TokenReview"}, {Group: "apps", Version: "v1", Kind: "Scale"},
	} {
		if _, err := r.Resolve(t.Context(), gvk); !IsNotServed(err) {
			t.Errorf("want %s not to be served, got %v", gvk, err)
		}
	}

	kind, crd := widgets(t, "resolved")
	served := func(want bool) func() error {
		return func() error {
			r.Forget(kind.Group)
			got, err := r.Resolve(t.Context(), kind.GroupVersionKind)
			if (err == nil) != want || err != nil && !IsNotServed(err) || want && got != kind {
				return fmt.Errorf("want served %v, got %v (%w)", want, got, errors.Join(err, errors.New("another answer")))
			}
			return nil
		}
	}
	eventually(t, "what is not there is not served", served(false))
	if err := c.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what comes is", served(true))
	eventually(t, "give it a status", func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		crd.Spec.Versions[0].Subresources = statusSubresource()
		return c.Update(t.Context(), crd)
	})
	kind.StatusSubresource = true
	eventually(t, "and what changes is another kind", served(true))
	undefine(t, c, crd)
	eventually(t, "what goes is not served any more", served(false))
}

func statusSubresource() *apiextensionsv1.CustomResourceSubresources {
	return &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
}

// TestAPIThatIsDown has an aggregated API come that does not answer, and go.
func TestAPIThatIsDown(t *testing.T) {
	c := testClient(t)
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	r := NewResolver(ResolverOptions{Client: disco})
	kind := Kind{GroupVersionKind: schema.GroupVersionKind{Group: "down.example.org", Version: "v1", Kind: "Widget"}, Resource: "widgets"}
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1.down.example.org"},
		"spec": map[string]any{
			"group": kind.Group, "version": "v1", "groupPriorityMinimum": int64(1000), "versionPriority": int64(15), "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": "default", "name": "missing"},
		},
	}}
	if err := c.Create(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.IgnoreNotFound(c.Delete(context.Background(), service)) })
	eventually(t, "it is not said that the kind is not served", func() error {
		r.Forget(kind.Group)
		if _, err := r.Resolve(t.Context(), kind.GroupVersionKind); err == nil || IsNotServed(err) || IsForbidden(err) {
			return fmt.Errorf("got %v", err) //nolint:errorlint // It is only shown.
		}
		return nil
	})

	other, _ := newConfigMaps(t, c)
	w, _ := start(t, config, func(Event) {}, keepNotes, func(o *Options) { o.MinBackoff = time.Hour })
	w.Set("test", kind, other)
	eventually(t, "another kind does not mind", inState(w, other, StateSynced))
	eventually(t, "the kind says why it is not known", func() error {
		if state, message := w.State(kind); state != StateSyncing || !strings.HasPrefix(message, "cannot list and watch widgets.v1.down.example.org: ") {
			return fmt.Errorf("got %s %q", state, message)
		}
		return nil
	})
	if err := c.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	eventually(t, "once the API is gone, the kind is not served", func() error {
		r.Forget(kind.Group)
		w.Retry(kind.GroupResource())
		if _, err := r.Resolve(t.Context(), kind.GroupVersionKind); !IsNotServed(err) {
			return fmt.Errorf("got %v", err) //nolint:errorlint // It is only shown.
		}
		return inState(w, kind, StateNotServed)()
	})
}
