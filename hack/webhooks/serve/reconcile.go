// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Reconcilers makes the reconcilers of a provider as its main.go does, by what a request calls them. It records what
// reaches the cloud in other ways than by a request over HTTP. The manager is never started.
type Reconcilers func(mgr ctrl.Manager, record func(request string)) (map[string]reconcile.Reconciler, error)

// outcome is what one reconciler did with one object.
type outcome struct {
	Error string `json:"error"`
	// Requests are those to the cloud, Writes those to the API server of the test.
	Requests []string `json:"requests"`
	Writes   []string `json:"writes"`
}

// recorder refuses each request to the cloud. The first one ends the reconciliation: it would be retried for minutes.
type recorder struct {
	mutex   sync.Mutex
	outcome outcome
	cancel  context.CancelFunc
}

func (r *recorder) request(request string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.outcome.Requests = append(r.outcome.Requests, request)
	r.cancel()
}

// ServeHTTP stands for each API of the cloud.
func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.request(request.Method + " " + request.Host + request.URL.Path)
	w.WriteHeader(http.StatusForbidden)
}

// wrap records what is written to the API server of the test.
func (r *recorder) wrap(to http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method != http.MethodGet {
			r.mutex.Lock()
			r.outcome.Writes = append(r.outcome.Writes, request.Method+" "+request.URL.Path)
			r.mutex.Unlock()
		}
		return to.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// reconcile repeats a reconciliation until it has reached the cloud, fails, or writes nothing more.
func (r *recorder) reconcile(with reconcile.Reconciler, object types.NamespacedName) outcome {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.outcome = outcome{}
	for range 5 {
		var ctx context.Context
		ctx, r.cancel = context.WithCancel(context.Background())
		before := len(r.outcome.Writes)
		r.mutex.Unlock()
		_, err := with.Reconcile(ctx, reconcile.Request{NamespacedName: object})
		r.mutex.Lock()
		r.cancel()
		if err != nil {
			r.outcome.Error, _, _ = strings.Cut(err.Error(), "\n") // Without the stack.
		}
		if err != nil || len(r.outcome.Requests) > 0 || len(r.outcome.Writes) == before {
			break
		}
	}
	return r.outcome
}

// answer reconciles the object that each line of its input names: "reconciler namespace name". It answers with JSON.
func answer(config *rest.Config, scheme *runtime.Scheme, reconcilers Reconcilers, in io.Reader, out io.Writer) error {
	r := &recorder{cancel: func() {}}
	folder, err := os.MkdirTemp("", "cloud")
	if err != nil {
		return fmt.Errorf("cannot create a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := intercept(r, folder); err != nil {
		return err
	}
	config.Wrap(r.wrap)
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		NewClient: func(config *rest.Config, o client.Options) (client.Client, error) {
			return client.NewWithWatch(config, client.Options{Scheme: o.Scheme, Mapper: o.Mapper, HTTPClient: o.HTTPClient})
		},
	})
	if err != nil {
		return fmt.Errorf("cannot create the manager: %w", err)
	}
	all, err := reconcilers(mgr, r.request)
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var name string
		var object types.NamespacedName
		if _, err := fmt.Sscan(lines.Text(), &name, &object.Namespace, &object.Name); err != nil || all[name] == nil {
			return fmt.Errorf("there is no reconciler for %q", lines.Text())
		}
		if err := json.NewEncoder(out).Encode(r.reconcile(all[name], object)); err != nil {
			return fmt.Errorf("cannot answer: %w", err)
		}
	}
	return nil
}
