// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/discoverytest"
	"github.com/masthead-dev/masthead/internal/test/fakefleet"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/metric"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// lane is the API servers of a hub and of a workload cluster. A test has exclusive use of them while it runs, and
// leaves the workload cluster as it found it; in the hub each test has its own API groups.
type lane struct{ hub, workload *rest.Config }

// besides is how many tests run in parallel.
const besides = 3

var (
	servers controllertest.Servers
	lanes   = controllertest.NewLanes(besides, startLane)
)

func startLane() (lane, error) {
	crds, err := testenv.CrossplaneCRDs(context.Background())
	if err != nil {
		return lane{}, err
	}
	hub, err := servers.Start(
		testenv.CRDs(),
		filepath.Join(crds, "apiextensions.crossplane.io_compositeresourcedefinitions.yaml"),
		filepath.Join(crds, "apiextensions.crossplane.io_compositions.yaml"),
	)
	if err != nil {
		return lane{}, err
	}
	workload, err := servers.Start()
	if err != nil {
		return lane{}, err
	}
	return lane{hub: hub.Config, workload: workload.Config}, nil
}

func TestMain(m *testing.M) {
	controllertest.Beside(besides)
	servers.Run(m)
}

// lastReports has the last report for each definition.
type lastReports struct {
	mu    sync.Mutex
	kinds map[string]string
}

func (r *lastReports) set(crd, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kinds[crd] = what
}

func (r *lastReports) get(crd string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kinds[crd]
}

func (r *lastReports) report(_ mcr.ClusterName, crd string, wanted bool, problem *condition.Error) {
	switch {
	case !wanted:
		r.set(crd, "")
	case problem != nil:
		r.set(crd, problem.Reason)
	default:
		r.set(crd, "Served")
	}
}

// fixture is a hub and a workload cluster with discovery between them.
type fixture struct {
	*discoverytest.Fixture

	lane       lane
	fleet      *fakefleet.Fleet
	reports    *lastReports
	registry   *prometheus.Registry
	reconciler *reconciler
	users      *install.PolicyUsers

	// othersPolicy reports whether another hub protects the cluster.
	othersPolicy bool

	// clock is the real one if it is nil.
	clock clock.PassiveClock

	manager   *controllertest.Manager
	disengage context.CancelFunc
}

// newFixture starts discovery for a cluster whose class offers one API group.
func newFixture(t *testing.T, options ...func(*fleetv1alpha1.EnrollmentClass)) *fixture {
	t.Helper()
	f := prepareFixture(t, options...)
	f.start()
	return f
}

// prepareFixture is newFixture without starting it.
func prepareFixture(t *testing.T, options ...func(*fleetv1alpha1.EnrollmentClass)) *fixture {
	t.Helper()
	return prepareOn(t, lanes.Take(t), options...)
}

// prepareOn is prepareFixture for the API servers of a lane that the test already has.
func prepareOn(t *testing.T, on lane, options ...func(*fleetv1alpha1.EnrollmentClass)) *fixture {
	t.Helper()
	f := &fixture{
		Fixture: discoverytest.New(t, on.hub, on.workload, options...),
		lane:    on, reports: &lastReports{kinds: map[string]string{}}, fleet: &fakefleet.Fleet{}, registry: prometheus.NewRegistry(),
	}
	t.Cleanup(f.removeDefinitions)
	return f
}

// removeDefinitions removes the definitions that are left of those that discovery installs in a cluster, for the next
// test on the lane: those that a test created itself, or that discovery released.
func (f *fixture) removeDefinitions() {
	f.T.Helper()
	for _, k := range mirroredKinds() {
		f.Within(k.crd()+" is gone", func() error {
			crd, err := f.GetCRD(f.Workload, k.crd())
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err == nil && crd.DeletionTimestamp == nil {
				err = f.Workload.Delete(f.Ctx, crd)
			}
			err = errors.Join(err, testenv.ReleaseDefinitions(f.Ctx, f.Workload))
			return fmt.Errorf("it is still there (%w)", err)
		})
	}
}

// start runs discovery and engages the cluster.
func (f *fixture) start() {
	f.T.Helper()
	f.manager = controllertest.NewManager(f.T, controllertest.Unlimited(f.lane.hub), controllertest.Scheme())
	f.users = &install.PolicyUsers{}
	o := Options{Fleet: f.fleet, Users: f.users, Gate: f.manager.Gate, Reporter: f.reports.report, Registerer: f.registry, Clock: f.clock, SkipNameValidation: new(true)}
	if err := o.setDefaults(); err != nil {
		f.T.Fatal(err)
	}
	var err error
	if f.reconciler, err = setup(f.manager, o); err != nil {
		f.T.Fatal(err)
	}
	f.fleet.Set(connection.Cluster{
		Name: f.Cluster, State: connection.StateConnected, Hub: f.Owner,
		Enrolment: connection.Enrolment{
			Class: f.Class.Name,
			Object: connection.ObjectReference{
				GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
				Namespace:        "default", Name: f.Class.Name, UID: types.UID(f.Class.Name),
			},
		},
	})
	f.manager.Run()
	f.engage()
	f.T.Cleanup(f.leave)
}

// stop stops discovery.
func (f *fixture) stop() { f.manager.Stop() }

// engage connects the cluster, as the provider would.
func (f *fixture) engage() {
	f.T.Helper()
	cfg := controllertest.Unlimited(f.lane.workload)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: f.User, Groups: f.UserGroups}
	cfg.Wrap(f.Traffic.Wrap)
	disconnect, manager := f.manager.Connect(f.Cluster, cfg), f.manager
	f.disengage = func() {
		disconnect()
		manager.Gate.Forget(f.Cluster)
	}
}

// leave leaves the workload cluster as it was: disabling the class removes everything.
func (f *fixture) leave() {
	// Also if something is left: a running controller would interfere with the tests that follow.
	defer f.stop()
	f.Traffic.SetAnswer(nil)
	f.EditClass(func(agent *fleetv1alpha1.AgentSpec) { agent.Mode = fleetv1alpha1.AgentModeDisabled })
	f.Within("everything is taken back", func() error {
		for _, k := range mirroredKinds() {
			if crd, err := f.GetCRD(f.Workload, k.crd()); err == nil && f.Owner.IsManaged(crd) {
				return fmt.Errorf("%s is still there", k.crd())
			}
		}
		for _, kind := range []string{policyKind.Kind, bindingKind.Kind} {
			u := discoverytest.NewObject(policyKind.GroupVersion().WithKind(kind), policyName)
			if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(u), u); !apierrors.IsNotFound(err) && (err != nil || f.Owner.IsManaged(u)) {
				return fmt.Errorf("the %s is still there (%w)", kind, err)
			}
		}
		return nil
	})
	if f.othersPolicy {
		return
	}
	// The API server notices a moment later that the policy is gone. Until then it refuses what the next test writes under
	// another name.
	f.Within("the policy is in force no more", func() error {
		labelled := f.NewClaimCRD("leftovers", map[string]string{fleetv1alpha1.ManagedByLabel: install.LabelValue})
		return f.Workload.Create(f.Ctx, labelled, client.DryRunAll)
	})
}

// restart stops discovery and starts it again.
func (f *fixture) restart() {
	f.T.Helper()
	f.stop()
	f.registry = prometheus.NewRegistry()
	f.start()
}

func (f *fixture) reported(crd, what string) {
	f.T.Helper()
	f.Within("the report about "+crd, func() error {
		if got := f.reports.get(crd); got != what {
			return fmt.Errorf("want %q, got %q", what, got)
		}
		return nil
	})
}

// gauge returns the value of a metric that has these label values, where the name of the fixture's cluster stands for
// its labels; -1 if there is no such series.
func (f *fixture) gauge(name string, labels ...string) float64 {
	f.T.Helper()
	if i := slices.Index(labels, string(f.Cluster)); i >= 0 {
		labels = slices.Replace(slices.Clone(labels), i, i+1, metric.ClusterValues(f.Cluster)...)
	}
	families, err := f.registry.Gather()
	if err != nil {
		f.T.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			values := map[string]bool{}
			for _, l := range m.GetLabel() {
				values[l.GetValue()] = true
			}
			all := true
			for _, l := range labels {
				all = all && values[l]
			}
			if all {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return -1
}

func (f *fixture) gaugeIs(want float64, name string, labels ...string) {
	f.T.Helper()
	f.Within("the metric "+name, func() error {
		if got := f.gauge(name, labels...); got != want {
			return fmt.Errorf("want %v, got %v", want, got)
		}
		return nil
	})
}

var _ Fleet = &connection.Provider{}
