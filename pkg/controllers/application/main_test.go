// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/applicationtest"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/fakefleet"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// lane is the API servers of a hub and of a workload cluster. A test has exclusive use of them while it runs, and its
// own namespace in the workload cluster.
type lane struct{ hub, workload *envtest.Environment }

// besides is how many tests run in parallel.
const besides = 3

var (
	servers controllertest.Servers
	lanes   = controllertest.NewLanes(besides, func() (lane, error) {
		hub, err := servers.Start(testenv.CRDs())
		if err != nil {
			return lane{}, err
		}
		workload, err := servers.Start()
		return lane{hub: hub, workload: workload}, err
	})
)

func TestMain(m *testing.M) {
	controllertest.Beside(besides)
	servers.Run(m)
}

// fixture is a hub and a workload cluster whose Applications are reconciled.
type fixture struct {
	*applicationtest.Fixture

	lane       lane
	fleet      *fakefleet.Fleet
	registry   *prometheus.Registry
	reconciler *reconciler
	options    []func(*Options)
	manager    *controllertest.Manager
	disengage  context.CancelFunc
}

func newFixture(t *testing.T, options ...func(*Options)) *fixture {
	t.Helper()
	l := lanes.Take(t)
	f := &fixture{Fixture: applicationtest.New(t, l.hub.Config, l.workload.Config), lane: l, fleet: &fakefleet.Fleet{}, options: options}
	f.start()
	t.Cleanup(func() {
		f.Traffic.SetAnswer(nil)
		f.Traffic.SetAfter(nil)
		f.stop()
		// What a test leaves must not affect the tests that follow.
		if err := client.IgnoreNotFound(f.Workload.DeleteAllOf(f.Ctx, &appsv1alpha1.Application{}, client.InNamespace(f.Namespace))); err != nil {
			t.Errorf("cannot delete the Applications: %v", err)
		}
	})
	return f
}

// start runs the controller and engages the cluster.
func (f *fixture) start() {
	f.T.Helper()
	f.manager = controllertest.NewManager(f.T, controllertest.Unlimited(f.lane.hub.Config), controllertest.Scheme())
	f.registry = prometheus.NewRegistry()
	o := Options{Fleet: f.fleet, Gate: f.manager.Gate, Registerer: f.registry, MetricsPerApplication: true, SkipNameValidation: new(true)}
	for _, change := range f.options {
		change(&o)
	}
	if err := o.setDefaults(); err != nil {
		f.T.Fatal(err)
	}
	var err error
	if f.reconciler, err = setup(f.manager, o); err != nil {
		f.T.Fatal(err)
	}
	f.fleet.Set(f.Enrolment(connection.StateConnected))
	f.manager.Run()
	f.engage()
}

// stop stops the controller.
func (f *fixture) stop() { f.manager.Stop() }

// engage connects the cluster, as the provider would.
func (f *fixture) engage() {
	f.T.Helper()
	cfg := controllertest.Unlimited(f.lane.workload.Config)
	cfg.Wrap(f.Traffic.Wrap)
	cfg.Impersonate.UserName = f.User
	f.disengage = f.manager.Connect(f.Cluster, cfg)
}

// restart stops the controller and starts it again.
func (f *fixture) restart() {
	f.T.Helper()
	f.stop()
	f.start()
}

var _ Fleet = &connection.Provider{}
