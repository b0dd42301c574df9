// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestStaleWhenTheConversionWebhookIsGone has a CRD whose conversion webhook does not answer, so that its objects
// cannot be listed.
func TestStaleWhenTheConversionWebhookIsGone(t *testing.T) {
	c := testClient(t)
	kind, crd := widgets(t, "stale")
	other := *crd.Spec.Versions[0].DeepCopy()
	other.Name, other.Storage = "v2", false
	crd.Spec.Versions = append(crd.Spec.Versions, other)
	if err := c.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	stored := widget(kind, "one")
	createWhenServed(t, c, stored)
	kind.Version = "v2"
	t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), crd) })

	var failed atomic.Int32
	cfg := intercepted(config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err == nil && resp.StatusCode >= http.StatusBadRequest {
			failed.Add(1)
		}
		return resp, err
	})
	clk := clocktesting.NewFakeClock(time.Now())
	r := &recorder{}
	w, _ := start(t, cfg, r.handle, func(o *Options) { o.Clock = clk })
	w.Set("test", kind)
	eventually(t, "synced", func() error { clk.Step(time.Second); return inState(w, kind, StateSynced)() })

	convert := func(conversion *apiextensionsv1.CustomResourceConversion) {
		t.Helper()
		eventually(t, "the conversion is changed", func() error {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
				return err
			}
			crd.Spec.Conversion = conversion
			return c.Update(t.Context(), crd)
		})
	}
	convert(&apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/convert")}, ConversionReviewVersions: []string{"v1"},
		},
	})
	eventually(t, "it cannot be listed", func() error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersionKind)
		if err := c.List(t.Context(), list, client.InNamespace("default")); err == nil {
			return errors.New("it can")
		}
		return nil
	})
	w.Relist(only(kind))
	eventually(t, "its list fails", func() error {
		if failed.Load() == 0 {
			return errors.New("it does not")
		}
		return nil
	})
	if err := inState(w, kind, StateSynced)(); err != nil {
		t.Errorf("What fails for a moment is not stale: %v", err)
	}
	eventually(t, "stale", func() error { clk.Step(DefaultStaleAfter / 10); return inState(w, kind, StateStale)() })
	if err := has(w, kind, "one")(); err != nil {
		t.Errorf("What was known last is served: %v", err)
	}
	convert(&apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter})
	eventually(t, "synced again", func() error { clk.Step(DefaultMaxBackoff); return inState(w, kind, StateSynced)() })
	if got := r.seen("one"); len(got) != 1 {
		t.Errorf("want nothing to be reported of an object that did not change, got %v", got)
	}
}

// TestStaleWhenRequestsHang is about a server that takes requests and does not answer. No attempt fails, so it is not
// the end of one that makes the kind stale.
func TestStaleWhenRequestsHang(t *testing.T) {
	var hanging atomic.Bool
	var mu sync.Mutex
	answered := make(chan struct{})
	cfg := intercepted(config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if hanging.Load() {
			mu.Lock()
			wait := answered
			mu.Unlock()
			select {
			case <-wait:
			case <-req.Context().Done():
				return nil, req.Context().Err()
			}
		}
		return next.RoundTrip(req)
	})
	clk := clocktesting.NewFakeClock(time.Now())
	r := &recorder{}
	w, _ := start(t, cfg, r.handle, func(o *Options) { o.Clock, o.StaleAfter = clk, time.Hour })
	w.Set("test", configMaps)
	eventually(t, "synced", inState(w, configMaps, StateSynced))
	hanging.Store(true)
	w.Relist(only(configMaps))
	eventually(t, "the time is measured", func() error {
		k := w.kind(configMaps)
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.blind == nil {
			return errors.New("it is not")
		}
		return nil
	})
	clk.Step(time.Hour - time.Second)
	if err := inState(w, configMaps, StateSynced)(); err != nil {
		t.Errorf("Not yet: %v", err)
	}
	eventually(t, "stale", func() error { clk.Step(time.Second); return inState(w, configMaps, StateStale)() })
	hanging.Store(false)
	close(answered)
	eventually(t, "synced again", inState(w, configMaps, StateSynced))
	r.mu.Lock()
	defer r.mu.Unlock()
	var states []State
	for _, e := range r.events {
		if e.Type == StateChanged {
			states = append(states, e.State)
		}
	}
	if len(states) != 3 || states[1] != StateStale {
		t.Errorf("want each state to be reported once, got %v", states)
	}
}
