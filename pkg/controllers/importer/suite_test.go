// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/importertest"
	"github.com/masthead-dev/masthead/pkg/controllers/importer"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// world is a hub with the importer in it.
type world struct {
	*importertest.Hub
	// clock of the importer; nil means the real one.
	clock clock.Clock
	// mapper is the importer's meta.RESTMapper.
	mapper atomic.Value
	// stopImporter stops the importer, and returns its error.
	stopImporter func() error
}

// All worlds share the recorders.
var (
	shared sharedWorld
	writes = &recorder{seen: map[string]bool{}, lost: map[string]bool{}}
	rights = &usage{seen: map[string]bool{}}
)

// sharedWorld is started by the first test that needs it.
type sharedWorld struct {
	once  sync.Once
	world *world
	stop  func() error
	err   error
}

// modern is the world of most tests: the managed resources are namespaced.
func modern(tb testing.TB) *world {
	tb.Helper()
	shared.once.Do(func() {
		shared.world, shared.stop, shared.err = startWorld(context.Background(), importertest.ModernKinds())
	})
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.world
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if shared.stop != nil {
		if err := shared.stop(); err != nil {
			code = fail(err)
		}
	}
	if err := errors.Join(writes.onlyAllowedWrites(), rights.rightsAreMinimal()); err != nil {
		code = fail(err)
	}
	return code
}

// startWorld starts a hub that serves some kinds, and the importer in it. stop returns what went wrong in them.
func startWorld(ctx context.Context, kinds []schema.GroupKind) (w *world, stop func() error, err error) {
	hub, err := importertest.Start(ctx, kinds)
	if err != nil {
		return nil, nil, err
	}
	hub.Recorder = record
	w = &world{Hub: hub}
	if err := w.grant(ctx); err != nil {
		return nil, nil, errors.Join(err, hub.Stop())
	}
	w.stopImporter = importertest.RunInBackground(ctx, w.runImporter)
	return w, func() error { return errors.Join(w.stopImporter(), hub.Stop()) }, nil
}

// record lets the importer write for an import that a test creates.
func record(o client.Object) {
	if imp, ok := o.(*fleetv1alpha1.ClusterImport); ok {
		writes.names(imp.Name)
		if account := imp.Spec.HubServiceAccount(); account != "" {
			writes.account(account)
		}
	}
}

func (w *world) runImporter(ctx context.Context) error {
	mgr, err := ctrl.NewManager(rights.asServiceAccount(w.Config), ctrl.Options{
		Scheme: controllertest.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}},
		NewClient: func(cfg *rest.Config, o client.Options) (client.Client, error) {
			c, err := client.NewWithWatch(cfg, o)
			if err != nil {
				return nil, err
			}
			return interceptor.NewClient(c, writes.funcs()), nil
		},
	})
	if err != nil {
		return fmt.Errorf("cannot create the manager: %w", err)
	}
	w.mapper.Store(mgr.GetRESTMapper())
	unchecked := true
	err = importer.SetupWithManager(mgr, importer.Options{
		Credentials: credentials.Options{AllowLoopback: true}, SkipNameValidation: &unchecked, Clock: w.clock,
		AllowedTokenEndpoints: []string{w.Tokens.URL() + "/"}, TokenAuthorities: w.Tokens.Authority(),
	})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
