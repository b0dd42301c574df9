// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/fence"
)

// lease is a lock that is always granted.
type lease struct{ resourcelock.Interface }

func (lease) Identity() string { return "me" }

func (lease) Update(context.Context, resourcelock.LeaderElectionRecord) error { return nil }

// fenceClock counts how often the time is compared with the lease: before each write.
type fenceClock struct {
	clock.RealClock

	checks atomic.Int32
}

func (c *fenceClock) Since(t time.Time) time.Duration {
	c.checks.Add(1)
	return c.RealClock.Since(t)
}

// TestNoWriteToTheHubPassesAClosedFence writes in every way that the manager's parts get from the local manager. What a
// connection to a workload cluster sends is in package connection.
func TestNoWriteToTheHubPassesAClosedFence(t *testing.T) {
	var writes atomic.Int32
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			writes.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/api/v1" {
			_, _ = w.Write([]byte(`{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"serviceaccounts","namespaced":true,"kind":"ServiceAccount","verbs":["get"]}]}`))
			return
		}
		_, _ = w.Write([]byte(`{"kind":"APIVersions","versions":["v1"]}`))
	}))
	defer hub.Close()
	c := &fenceClock{}
	held := fence.New(time.Nanosecond, c)
	record := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
	if err := held.Lock(lease{}).Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	mgr, err := newLocalManager(&rest.Config{Host: hub.URL}, Options{}, leadership{fence: held})
	if err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}}
	accounts := corev1.SchemeGroupVersion.WithResource("serviceaccounts")
	byConfig, err := client.New(mgr.GetConfig(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	as, err := hubaccess.New(mgr, clock.RealClock{}, time.Minute, time.Minute).Use(t.Context(), byConfig,
		hubaccess.Key{ServiceAccount: types.NamespacedName{Namespace: "default", Name: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	ways := map[string]func() error{
		"Client": func() error { return mgr.GetClient().Create(t.Context(), account.DeepCopy()) },
		"Status": func() error { return mgr.GetClient().Status().Update(t.Context(), account.DeepCopy()) },
		"Config": func() error { return byConfig.Delete(t.Context(), account.DeepCopy()) },
		"Dynamic": func() error {
			return dynamic.NewForConfigOrDie(mgr.GetConfig()).Resource(accounts).Namespace("default").Delete(t.Context(), "x", metav1.DeleteOptions{})
		},
		"Metadata": func() error {
			return metadata.NewForConfigOrDie(mgr.GetConfig()).Resource(accounts).Namespace("default").Delete(t.Context(), "x", metav1.DeleteOptions{})
		},
		"HTTPClient": func() error {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, hub.URL+"/api/v1/namespaces/x", nil)
			if err != nil {
				return err
			}
			resp, err := mgr.GetHTTPClient().Do(req)
			if err == nil {
				_ = resp.Body.Close()
			}
			return err
		},
		"Identity": func() error { return hubaccess.API{}.Delete(as.In(t.Context()), account.DeepCopy()) },
	}
	for name, write := range ways {
		if err := write(); !errors.Is(err, fence.ErrNotLeading) {
			t.Errorf("%s: want the write to be stopped, got %v", name, err)
		}
	}
	before := c.checks.Load()
	mgr.GetEventRecorder("test").Eventf(account, nil, corev1.EventTypeNormal, "Reason", "Action", "note")
	eventually(t, "the event is stopped", func() bool { return c.checks.Load() > before })
	if n := writes.Load(); n != 0 {
		t.Errorf("want no write to arrive while the fence is closed, got %d", n)
	}
}
