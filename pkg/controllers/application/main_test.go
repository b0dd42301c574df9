// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
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

func scheme() *runtime.Scheme {
	return controllertest.NewScheme(clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, fleetv1alpha1.AddToScheme, appsv1alpha1.AddToScheme)
}

// fixture is a hub and a workload cluster whose Applications are reconciled.
type fixture struct {
	controllertest.Case

	lane          lane
	hub, workload client.Client
	traffic       controllertest.Traffic
	fleet         *fakefleet.Fleet
	registry      *prometheus.Registry
	reconciler    *reconciler
	cluster       mcr.ClusterName
	class         *fleetv1alpha1.EnrollmentClass
	namespace     string
	options       []func(*Options)

	// user is the controller's username in the workload cluster; empty for an administrator.
	user string

	manager   *controllertest.Manager
	disengage context.CancelFunc
}

var fixtures atomic.Int32

func newFixture(t *testing.T, options ...func(*Options)) *fixture {
	t.Helper()
	l := lanes.Take(t)
	n := fixtures.Add(1)
	f := &fixture{
		lane:      l,
		Case:      controllertest.Case{T: t, Ctx: context.WithoutCancel(t.Context()), Patience: time.Minute},
		fleet:     &fakefleet.Fleet{},
		cluster:   mcr.ClusterName(fmt.Sprintf("capi/fleet/w%d", n)),
		namespace: fmt.Sprintf("shop-%d", n), options: options,
	}
	f.hub, f.workload = controllertest.NewClient(t, l.hub.Config, scheme()), controllertest.NewClient(t, l.workload.Config, scheme())
	f.class = &fleetv1alpha1.EnrollmentClass{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("class-%d", n)},
		Spec:       fleetv1alpha1.EnrollmentClassSpec{Agent: fleetv1alpha1.AgentSpec{Mode: fleetv1alpha1.AgentModeDisabled, DefaultTargetNamespace: "bar"}},
	}
	f.Create(f.hub, f.class)
	if err := f.hub.Create(f.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}}); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	f.Create(f.workload, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}})
	f.start()
	t.Cleanup(func() {
		f.traffic.SetAnswer(nil)
		f.traffic.SetAfter(nil)
		f.stop()
		// What a test leaves must not affect the tests that follow.
		if err := client.IgnoreNotFound(f.workload.DeleteAllOf(f.Ctx, &appsv1alpha1.Application{}, client.InNamespace(f.namespace))); err != nil {
			t.Errorf("cannot delete the Applications: %v", err)
		}
	})
	return f
}

// start runs the controller and engages the cluster.
func (f *fixture) start() {
	f.T.Helper()
	f.manager = controllertest.NewManager(f.T, controllertest.Unlimited(f.lane.hub.Config), scheme())
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
	f.fleet.Set(f.enrolled(connection.StateConnected))
	f.manager.Run()
	f.engage()
}

// stop stops the controller.
func (f *fixture) stop() { f.manager.Stop() }

// enrolled is the cluster as it is in the fleet, in a given state.
func (f *fixture) enrolled(state connection.State) connection.Cluster {
	key, _ := connection.ParseClusterName(f.cluster)
	return connection.Cluster{
		Name: f.cluster, State: state, Reason: string(state),
		Enrolment: connection.Enrolment{Class: f.class.Name, Object: connection.ObjectReference{
			GroupVersionKind: schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Cluster"},
			Namespace:        key.Namespace, Name: key.Name, UID: types.UID("uid-of-" + key.Name),
		}},
	}
}

// engage connects the cluster, as the provider would.
func (f *fixture) engage() {
	f.T.Helper()
	cfg := controllertest.Unlimited(f.lane.workload.Config)
	cfg.Wrap(f.traffic.Wrap)
	cfg.Impersonate.UserName = f.user
	f.disengage = f.manager.Connect(f.cluster, cfg)
}

// restart stops the controller and starts it again.
func (f *fixture) restart() {
	f.T.Helper()
	f.stop()
	f.start()
}

// settled waits until the workload cluster receives no more requests.
func (f *fixture) settled() {
	f.T.Helper()
	f.AtRest(100, f.traffic.Progress)
}

// served waits until the cluster has the definition of Applications.
func (f *fixture) served() {
	f.T.Helper()
	f.Within("Applications are served", func() error {
		return f.workload.List(f.Ctx, &appsv1alpha1.ApplicationList{}, client.InNamespace(f.namespace))
	})
}

// application creates an Application that selects the label app with its name.
func (f *fixture) application(name string, components map[string]appsv1alpha1.ComponentKind, change ...func(*appsv1alpha1.Application)) *appsv1alpha1.Application {
	f.T.Helper()
	f.served()
	app := &appsv1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name},
		Spec: appsv1alpha1.ApplicationSpec{
			Type: "wordpress", Version: "1.0", Components: components,
			Selector: appsv1alpha1.LabelSelector{MatchLabels: map[string]appsv1alpha1.LabelValue{"app": appsv1alpha1.LabelValue(name)}},
		},
	}
	for _, c := range change {
		c(app)
	}
	f.Create(f.workload, app)
	return app
}

// configMap creates a ConfigMap that is a component of an Application.
func (f *fixture) configMap(name, application string, change ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	f.T.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: f.member(name, application)}
	for _, c := range change {
		c(cm)
	}
	f.Create(f.workload, cm)
	return cm
}

// member is the metadata of a component of an Application.
func (f *fixture) member(name, application string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: f.namespace, Name: name, Labels: map[string]string{"app": application},
		Annotations: map[string]string{appsv1alpha1.ApplicationAnnotation: application},
	}
}

// has waits until check accepts the status of an Application.
func (f *fixture) has(app *appsv1alpha1.Application, check func(appsv1alpha1.ApplicationStatus) error) {
	f.T.Helper()
	f.Within("the status of "+app.Name, func() error {
		if err := f.workload.Get(f.Ctx, client.ObjectKeyFromObject(app), app); err != nil {
			return err
		}
		if app.Status.ObservedGeneration != app.Generation {
			return fmt.Errorf("generation %d was not observed", app.Generation)
		}
		if err := check(app.Status); err != nil {
			return fmt.Errorf("%w: %+v", err, app.Status)
		}
		return nil
	})
}

// installed waits until just these are installed.
func (f *fixture) installed(app *appsv1alpha1.Application, names ...string) {
	f.T.Helper()
	f.has(app, func(s appsv1alpha1.ApplicationStatus) error {
		if !slices.Equal(s.Installed, names) {
			return fmt.Errorf("want %q to be installed", names)
		}
		return nil
	})
}

// owned waits until an object is, or is not, owned by an Application.
func (f *fixture) owned(obj client.Object, app *appsv1alpha1.Application, want bool) {
	f.T.Helper()
	f.Within("the owner of "+obj.GetName(), func() error {
		if err := f.workload.Get(f.Ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		if got := isOwned(obj, app); got != want {
			return fmt.Errorf("owned by %q: want %t, got %t", app.Name, want, got)
		}
		return nil
	})
}

func isOwned(obj client.Object, app *appsv1alpha1.Application) bool {
	return slices.ContainsFunc(obj.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == app.UID })
}

// formatCondition returns a condition as "Status Reason".
func formatCondition(s appsv1alpha1.ApplicationStatus, conditionType string) string {
	c := meta.FindStatusCondition(s.Conditions, conditionType)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

// componentOfStatus returns what a status says about a component, as "Installed/Health Reason".
func componentOfStatus(s appsv1alpha1.ApplicationStatus, name string) string {
	for _, c := range s.Components {
		if c.Name == name {
			return string(c.Installed) + "/" + string(c.Health) + " " + c.Reason
		}
	}
	return ""
}

// Kinds that the tests use.
var (
	configMaps  = appsv1alpha1.ComponentKind{Version: "v1", Kind: "ConfigMap"}
	services    = appsv1alpha1.ComponentKind{Version: "v1", Kind: "Service"}
	deployments = appsv1alpha1.ComponentKind{Group: "apps", Version: "v1", Kind: "Deployment"}
)

// components are components by name, all of one kind.
func components(kind appsv1alpha1.ComponentKind, names ...string) map[string]appsv1alpha1.ComponentKind {
	out := map[string]appsv1alpha1.ComponentKind{}
	for _, name := range names {
		out[name] = kind
	}
	return out
}

var _ Fleet = &connection.Provider{}
