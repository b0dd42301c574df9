// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/fence"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/providers/connection/connectiontest"
)

// lease is a lock that is always granted.
type lease struct{ resourcelock.Interface }

func (lease) Identity() string { return "me" }

func (lease) Update(context.Context, resourcelock.LeaderElectionRecord) error { return nil }

// fencedHub is a fence that counts what it stopped.
type fencedHub struct {
	*fence.Fence

	mu      sync.Mutex
	stopped map[string]int // by method and the last part of the path
}

func (f *fencedHub) set(t *testing.T, open bool) {
	t.Helper()
	record := resourcelock.LeaderElectionRecord{}
	if open {
		record.HolderIdentity = "me"
	}
	if err := f.Lock(lease{}).Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
}

func (f *fencedHub) wrap(next http.RoundTripper) http.RoundTripper {
	fenced := f.Wrap(next)
	return sender(func(req *http.Request) (*http.Response, error) {
		resp, err := fenced.RoundTrip(req)
		if errors.Is(err, fence.ErrNotLeading) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.stopped[req.Method+req.URL.Path[strings.LastIndex(req.URL.Path, "/"):]]++
		}
		return resp, err
	})
}

func (f *fencedHub) awaitStopped(t *testing.T, request string) {
	t.Helper()
	connectiontest.Eventually(t, request+" is stopped", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.stopped[request] > 0
	})
}

type sender func(*http.Request) (*http.Response, error)

func (s sender) RoundTrip(req *http.Request) (*http.Response, error) { return s(req) }

// markedServer is a fake API server that keeps the marker of the hub, and accepts every other write.
func markedServer(t *testing.T) *frontend {
	t.Helper()
	f := newFrontend(t, nil)
	var (
		mu     sync.Mutex
		marker []byte
	)
	f.setAnswer(func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		switch of := strings.Contains(r.URL.Path, "/customresourcedefinitions"); {
		case of && r.Method == http.MethodGet && marker != nil:
		case of && (r.Method == http.MethodPost || r.Method == http.MethodPut):
			marker, _ = io.ReadAll(r.Body)
		case isWrite(r.Method+" ") && !strings.HasSuffix(r.URL.Path, "/serviceaccounts"):
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","metadata":{"name":"x"},"status":"Success"}`))
			return true
		default:
			return false
		}
		_, _ = w.Write(marker)
		return true
	})
	return f
}

// TestNoWritePassesAClosedFence writes in every way in which a connection can.
func TestNoWritePassesAClosedFence(t *testing.T) {
	held := &fencedHub{Fence: fence.New(time.Hour, clock.RealClock{}), stopped: map[string]int{}}
	held.set(t, true)
	account := func() *corev1.ServiceAccount {
		return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-", Namespace: "default"}}
	}
	accounts := corev1.SchemeGroupVersion.WithResource("serviceaccounts")
	src := newFakeSource()
	var h *harness
	h = newHarnessWith(t, src, func(p *Provider) {
		p.OnOffboard(func(ctx context.Context, name mcr.ClusterName) error {
			cl, err := h.Get(ctx, name)
			if err != nil {
				return err
			}
			return cl.GetClient().DeleteAllOf(ctx, account(), client.InNamespace("offboarded"))
		})
	}, func(o *Options) {
		o.Hub, o.HubInterval = hubidentity.Hub{ID: "me", Name: "hub"}, 100*time.Millisecond
		o.WrapTransport = held.wrap
	})
	a, b := markedServer(t), markedServer(t)
	src.set("a", a.kubeconfig(t, "token"))
	h.waitFor(t, "a", StateConnected, fleetv1alpha1.ReasonConnected)
	got, err := h.Get(t.Context(), clusterName("a"))
	if err != nil {
		t.Fatal(err)
	}
	cl, ok := got.(Connected)
	if !ok {
		t.Fatalf("a cluster of the provider is Connected, not %T", got)
	}
	byConfig, err := client.New(cl.GetConfig(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	byMetadata, err := metadata.NewForConfig(cl.GetConfig())
	if err != nil {
		t.Fatal(err)
	}
	existing := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "masthead", Namespace: "default"}}
	apply := client.RawPatch(types.ApplyPatchType, []byte(`{}`))
	ways := map[string]func() error{
		"Client":       func() error { return cl.GetClient().Create(t.Context(), account()) },
		"ClientStatus": func() error { return cl.GetClient().Status().Update(t.Context(), existing.DeepCopy()) },
		"ClientApply": func() error {
			return cl.GetClient().Patch(t.Context(), existing.DeepCopy(), apply, client.ForceOwnership, client.FieldOwner("x"))
		},
		"Config": func() error { return byConfig.Delete(t.Context(), existing.DeepCopy()) },
		"Metadata": func() error {
			return byMetadata.Resource(accounts).Namespace("default").Delete(t.Context(), "x", metav1.DeleteOptions{})
		},
		"Dynamic": func() error {
			obj := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "x"}}}
			obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
			_, err := cl.Dynamic().Resource(accounts).Namespace("default").Create(t.Context(), obj, metav1.CreateOptions{})
			return err
		},
	}
	for name, write := range ways {
		before := a.count(isWrite)
		if err := write(); errors.Is(err, fence.ErrNotLeading) || a.count(isWrite) != before+1 {
			t.Errorf("%s: want the write to arrive while the fence is open, got %v", name, err)
		}
	}

	held.set(t, false)
	before := a.count(isWrite)
	for name, write := range ways {
		if err := write(); !errors.Is(err, fence.ErrNotLeading) {
			t.Errorf("%s: want the write to be stopped, got %v", name, err)
		}
	}
	if err := cl.GetAPIReader().Get(t.Context(), client.ObjectKey{Name: "default"}, &corev1.Namespace{}); err != nil {
		t.Errorf("want reads to pass, got %v", err)
	}
	cl.GetEventRecorder("x").Eventf(existing, nil, corev1.EventTypeNormal, "Reason", "Action", "note")
	held.awaitStopped(t, "POST/events")

	src.remove("a")
	connectiontest.Eventually(t, "a is gone", func() bool { _, ok := h.Lookup(clusterName("a")); return !ok })
	held.awaitStopped(t, "DELETE/serviceaccounts")           // by offboarding
	held.awaitStopped(t, "PUT/"+fleetv1alpha1.HubMarkerName) // by releasing the cluster
	src.set("b", b.kubeconfig(t, "token"))                   // which is claimed first
	held.awaitStopped(t, "POST/customresourcedefinitions")
	if after, ofB := a.count(isWrite), b.count(isWrite); after != before || ofB != 0 {
		t.Errorf("want no write to arrive while the fence is closed, got %d and %d", after-before, ofB)
	}
}
