// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/fakefleet"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// lane is the API servers of a hub and of a workload cluster. A running test has them to itself, with its own API
// groups and namespaces, since those of earlier tests remain.
type lane struct {
	hub      *envtest.Environment
	workload *rest.Config
}

// besides is how many tests run in parallel.
const besides = 3

// The first tests that need the API servers start them, since fuzzing and tests of pure functions do not.
var (
	servers controllertest.Servers
	lanes   = controllertest.NewLanes(besides, startLane)

	// secondHubs provides the API server of another hub, for one test at a time.
	secondHubs = controllertest.NewLanes(1, startHub)
)

func startLane() (*lane, error) {
	hub, err := startHub()
	if err != nil {
		return nil, err
	}
	workload, err := servers.Start()
	if err != nil {
		return nil, err
	}
	return &lane{hub: hub, workload: workload.Config}, nil
}

// startHub starts the API server of a hub.
func startHub() (*envtest.Environment, error) {
	env, err := servers.Start(testenv.CRDs())
	if err != nil {
		return nil, err
	}
	return env, installXRDs(env.Config)
}

// patience is how long a test waits: long enough for a busy machine, and shorter than SlowRetry, so that a retry does
// not hide a missed event.
const patience = condition.SlowInterval - 5*time.Second

func TestMain(m *testing.M) {
	controllertest.Beside(besides)
	servers.Run(m)
}

// installXRDs makes the hub serve CompositeResourceDefinitions, with a schema that accepts any content.
func installXRDs(hub *rest.Config) error {
	c, err := client.New(hub, client.Options{Scheme: controllertest.Scheme()})
	if err != nil {
		return err
	}
	open := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
		Type: "object", XPreserveUnknownFields: new(true),
	}}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "compositeresourcedefinitions.apiextensions.crossplane.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: crossplane.XRDKind.Group, Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: crossplane.XRDKind.Resource, Kind: crossplane.XRDKind.Kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Schema: open,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
	if err := c.Create(context.Background(), crd); err != nil {
		return fmt.Errorf("cannot install XRDs: %w", err)
	}
	return nil
}

// fixture has an agent between the hub and the workload cluster.
type fixture struct {
	agenttest.Fixture

	lane     *lane
	fleet    *fakefleet.Fleet
	agent    *agent
	registry *prometheus.Registry
	grace    time.Duration

	// options change the agent's; nil for the tests' defaults.
	options func(*Options)

	manager          *controllertest.Manager
	disengageCluster context.CancelFunc
}

// newFixture starts an agent for a cluster whose claims go to one target namespace. The claim kind is published;
// options change the class before the agent starts.
func newFixture(t *testing.T, options ...func(*fleetv1alpha1.EnrollmentClass)) *fixture {
	t.Helper()
	f := prepareFixture(t, options...)
	f.start()
	return f
}

// prepareFixture is newFixture without starting the agent.
func prepareFixture(t *testing.T, options ...func(*fleetv1alpha1.EnrollmentClass)) *fixture {
	t.Helper()
	l := lanes.Take(t)
	return &fixture{
		Fixture: agenttest.New(t, patience, l.hub.Config, l.workload, options...),
		lane:    l, fleet: &fakefleet.Fleet{}, registry: prometheus.NewRegistry(), grace: time.Second,
	}
}

// start runs the agent and engages the cluster.
func (f *fixture) start() {
	f.T.Helper()
	hub := controllertest.Unlimited(f.HubConfig)
	hub.Impersonate.UserName = f.HubUser
	hub.Wrap(f.HubRequests.Wrap)
	f.manager = controllertest.NewManager(f.T, hub, controllertest.Scheme())
	o := Options{Fleet: f.fleet, Gate: f.manager.Gate, Registerer: f.registry, SkipNameValidation: new(true), ProtectedNamespaces: []string{"crossplane-system"}, WithdrawalGrace: f.grace, InFlightGrace: time.Millisecond}
	if f.options != nil {
		f.options(&o)
	}
	if err := o.setDefaults(); err != nil {
		f.T.Fatal(err)
	}
	var err error
	if f.agent, err = setup(f.manager, o); err != nil {
		f.T.Fatal(err)
	}

	f.fleet.Set(connection.Cluster{
		Name: f.Cluster, State: connection.StateConnected, UID: f.KubeSystemUID(), Hub: f.Owner,
		Enrolment: connection.Enrolment{
			Identifier: f.Identifier,
			Class:      f.Class,
			Object: connection.ObjectReference{
				GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
				Namespace:        "default", Name: f.Class, UID: types.UID(f.Class),
			},
		},
	})

	f.manager.Run()
	f.engage()
}

// stopAgent stops the agent.
func (f *fixture) stopAgent() { f.manager.Stop() }

// engage connects the cluster, as the provider would.
func (f *fixture) engage() {
	f.T.Helper()
	workload := controllertest.Unlimited(f.WorkloadConfig)
	workload.Impersonate.UserName = f.WorkloadUser
	workload.Wrap(f.WorkloadRequests.Wrap)
	disconnect, manager := f.manager.Connect(f.Cluster, workload), f.manager
	f.disengageCluster = func() {
		disconnect()
		manager.Gate.Forget(f.Cluster)
	}
}

// restart stops the agent and starts another one.
func (f *fixture) restart() {
	f.T.Helper()
	f.stopAgent()
	f.registry = prometheus.NewRegistry()
	f.start()
}

func (f *fixture) isRunning() bool { return f.agent != nil && !f.manager.IsStopped() }

// lookedAt waits until the agent, which may have been restarted, has reconciled a number of the fixture's claims.
func (f *fixture) lookedAt(claims int) {
	f.T.Helper()
	f.Within("the claims are looked at", func() error {
		n := 0
		f.agent.requirements.ledger.Each(func(req multicluster.ObjectRequest, e index.Entry) {
			if req.Kind.Group == f.Group && e.Reason != "" {
				n++
			}
		})
		if n != claims {
			return fmt.Errorf("%d of %d are", n, claims)
		}
		return nil
	})
}

// inHub waits until the agent has seen an object of the hub.
func (f *fixture) inHub(obj *unstructured.Unstructured) {
	f.T.Helper()
	f.Within("the agent has seen "+obj.GetName()+" in the hub", func() error {
		w, ok := f.agent.workloads.Get(f.Cluster)
		if !ok {
			return errors.New("the cluster is not engaged")
		}
		kind, ok := w.KindFor(f.ClaimCRD().Name)
		if !ok {
			return errors.New("the kind is not followed")
		}
		_, err := f.agent.hub.Watcher.Get(kind, client.ObjectKeyFromObject(obj))
		return err
	})
}

var _ index.Fleet = &connection.Provider{}
