// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// Servers are the API servers that the tests of a package share. The zero value has none.
type Servers struct {
	mu      sync.Mutex
	started []*envtest.Environment
}

// Start starts an API server that serves some CRDs. Run stops it.
func (s *Servers) Start(crds ...string) (*envtest.Environment, error) {
	env, err := testenv.New(crds...)
	if err != nil {
		return nil, err
	}
	// Before the start, so that what a failed start has left is stopped too.
	s.mu.Lock()
	s.started = append(s.started, env)
	s.mu.Unlock()
	if _, err := testenv.Start(env); err != nil {
		return nil, fmt.Errorf("cannot start an API server: %w", err)
	}
	return env, nil
}

// Run runs the tests of a package, stops the servers, and exits.
func (s *Servers) Run(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	code := m.Run()
	s.stop()
	os.Exit(code)
}

func (s *Servers) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, env := range s.started {
		_ = env.Stop()
	}
}

// NewClient returns a client that does not wait for a rate limit.
func NewClient(tb testing.TB, cfg *rest.Config, scheme *runtime.Scheme) client.Client {
	tb.Helper()
	c, err := client.New(Unlimited(cfg), client.Options{Scheme: scheme})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// Unlimited returns a copy of a configuration, without a rate limit.
func Unlimited(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	return cfg
}

// Scheme has the types that tests of controllers use.
func Scheme() *runtime.Scheme {
	return NewScheme(
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, fleetv1alpha1.AddToScheme,
		appsv1alpha1.AddToScheme,
	)
}

// NewScheme returns a scheme with the types that some functions register.
func NewScheme(adds ...func(*runtime.Scheme) error) *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range adds {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}
