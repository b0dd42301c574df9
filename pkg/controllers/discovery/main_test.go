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
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/fakefleet"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/managed"
	"github.com/masthead-dev/masthead/pkg/metric"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/pkg/readonlypolicy"
)

// mastheadUser is Masthead's username in the test workload cluster. The quotes are there to be quoted.
const mastheadUser = `masthead's "own" user`

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

func scheme() *runtime.Scheme {
	return controllertest.NewScheme(clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, fleetv1alpha1.AddToScheme)
}

// lastReports is a managed.Reporter that records the last report for each definition.
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

func (r *lastReports) DefinitionServed(_ mcr.ClusterName, crd string)             { r.set(crd, "Served") }
func (r *lastReports) DefinitionRefused(_ mcr.ClusterName, crd, reason, _ string) { r.set(crd, reason) }
func (r *lastReports) DefinitionForgotten(_ mcr.ClusterName, crd string)          { r.set(crd, "") }

// fixture is a hub and a workload cluster with discovery between them.
type fixture struct {
	controllertest.Case

	lane          lane
	hub, workload client.Client
	traffic       controllertest.Traffic
	fleet         *fakefleet.Fleet
	reports       *lastReports
	registry      *prometheus.Registry
	reconciler    *reconciler
	cluster       mcr.ClusterName
	class         *fleetv1alpha1.EnrollmentClass
	group         string
	user          string
	userGroups    []string

	users *readonlypolicy.Users

	// othersPolicy reports whether another hub protects the cluster.
	othersPolicy bool

	// owner is the hub as the owner of what is in the cluster.
	owner hubidentity.Owner

	// clock is the real one if it is nil.
	clock clock.PassiveClock

	manager   *controllertest.Manager
	disengage context.CancelFunc
}

var fixtures atomic.Int32

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
	n := fixtures.Add(1)
	f := &fixture{
		lane:     on,
		owner:    owner,
		Case:     controllertest.Case{T: t, Ctx: context.WithoutCancel(t.Context()), Patience: time.Minute},
		reports:  &lastReports{kinds: map[string]string{}},
		fleet:    &fakefleet.Fleet{},
		registry: prometheus.NewRegistry(),
		cluster:  mcr.ClusterName(fmt.Sprintf("capi/fleet/w%d", n)),
		group:    fmt.Sprintf("db%d.acmeco.org", n),
		user:     mastheadUser, userGroups: []string{"system:masters"},
	}
	f.hub, f.workload = controllertest.NewClient(t, on.hub, scheme()), controllertest.NewClient(t, on.workload, scheme())
	f.class = &fleetv1alpha1.EnrollmentClass{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("class-%d", n)},
		Spec: fleetv1alpha1.EnrollmentClassSpec{Agent: fleetv1alpha1.AgentSpec{
			Mode: fleetv1alpha1.AgentModeReadWrite, APIGroups: []string{f.group}, DefaultTargetNamespace: "bar",
		}, Applications: fleetv1alpha1.ApplicationsSpec{Mode: fleetv1alpha1.ApplicationsModeDisabled}},
	}
	for _, o := range options {
		o(f.class)
	}
	f.Create(f.hub, f.class)
	t.Cleanup(f.removeDefinitions)
	return f
}

// removeDefinitions removes the definitions that are left of those that discovery installs in a cluster, for the next
// test on the lane: those that a test created itself, or that discovery released.
func (f *fixture) removeDefinitions() {
	f.T.Helper()
	for _, k := range mirroredKinds() {
		f.Within(k.crd()+" is gone", func() error {
			crd, err := f.crd(f.workload, k.crd())
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err == nil && crd.DeletionTimestamp == nil {
				err = f.workload.Delete(f.Ctx, crd)
			}
			err = errors.Join(err, testenv.ReleaseDefinitions(f.Ctx, f.workload))
			return fmt.Errorf("it is still there (%w)", err)
		})
	}
}

// start runs discovery and engages the cluster.
func (f *fixture) start() {
	f.T.Helper()
	f.manager = controllertest.NewManager(f.T, controllertest.Unlimited(f.lane.hub), scheme())
	f.users = &readonlypolicy.Users{}
	o := Options{Fleet: f.fleet, Users: f.users, Gate: f.manager.Gate, Reporter: f.reports, Registerer: f.registry, Clock: f.clock, SkipNameValidation: new(true)}
	if err := o.setDefaults(); err != nil {
		f.T.Fatal(err)
	}
	var err error
	if f.reconciler, err = setup(f.manager, o); err != nil {
		f.T.Fatal(err)
	}
	f.fleet.Set(connection.Cluster{
		Name: f.cluster, State: connection.StateConnected, Hub: f.owner,
		Enrolment: connection.Enrolment{
			Class: f.class.Name,
			Object: connection.ObjectReference{
				GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
				Namespace:        "default", Name: f.class.Name, UID: types.UID(f.class.Name),
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
	cfg.Impersonate = rest.ImpersonationConfig{UserName: f.user, Groups: f.userGroups}
	cfg.Wrap(f.traffic.Wrap)
	disconnect, manager := f.manager.Connect(f.cluster, cfg), f.manager
	f.disengage = func() {
		disconnect()
		manager.Gate.Forget(f.cluster)
	}
}

// leave leaves the workload cluster as it was: disabling the class removes everything.
func (f *fixture) leave() {
	// Also if something is left: a running controller would interfere with the tests that follow.
	defer f.stop()
	f.traffic.SetAnswer(nil)
	f.changeClass(func(agent *fleetv1alpha1.AgentSpec) { agent.Mode = fleetv1alpha1.AgentModeDisabled })
	f.Within("everything is taken back", func() error {
		for _, k := range mirroredKinds() {
			if crd, err := f.crd(f.workload, k.crd()); err == nil && f.owner.IsManaged(crd) {
				return fmt.Errorf("%s is still there", k.crd())
			}
		}
		for _, kind := range []string{policyKind.Kind, bindingKind.Kind} {
			u := object(policyKind.GroupVersion().WithKind(kind), policyName)
			if err := f.workload.Get(f.Ctx, client.ObjectKeyFromObject(u), u); !apierrors.IsNotFound(err) && (err != nil || f.owner.IsManaged(u)) {
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
		labelled := f.claimCRD("leftovers", map[string]string{fleetv1alpha1.ManagedByLabel: managed.LabelValue})
		return f.workload.Create(f.Ctx, labelled, client.DryRunAll)
	})
}

// restart stops discovery and starts it again.
func (f *fixture) restart() {
	f.T.Helper()
	f.stop()
	f.registry = prometheus.NewRegistry()
	f.start()
}

func (f *fixture) changeClass(change func(*fleetv1alpha1.AgentSpec)) {
	f.T.Helper()
	f.Edit(f.hub, f.class, func() { change(&f.class.Spec.Agent) })
}

// settled waits until the workload cluster receives no more requests.
func (f *fixture) settled() {
	f.T.Helper()
	f.AtRest(100, f.traffic.Progress)
}

func (f *fixture) crd(c client.Client, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	return crd, c.Get(f.Ctx, types.NamespacedName{Name: name}, crd)
}

func object(gvk schema.GroupVersionKind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(gvk)
	u.SetName(name)
	return u
}

var (
	xrdGVK         = schema.GroupVersionKind{Group: crossplaneGroup, Version: "v1", Kind: "CompositeResourceDefinition"}
	compositionGVK = schema.GroupVersionKind{Group: crossplaneGroup, Version: "v1", Kind: "Composition"}
)

// xrd creates a definition in the hub, as a platform team does, with the status that Crossplane gives it.
func (f *fixture) xrd(plural string) *unstructured.Unstructured {
	f.T.Helper()
	u := object(xrdGVK, plural+"."+f.group)
	u.SetLabels(map[string]string{"tier": "gold", "pkg.crossplane.io/package": "internal"})
	u.SetAnnotations(map[string]string{"hub.example.org/note": "stays in the hub"})
	u.Object["spec"] = map[string]any{
		"group": f.group, "scope": "LegacyCluster",
		"names":                map[string]any{"kind": "Composite" + plural, "plural": plural},
		"claimNames":           map[string]any{"kind": "Claim" + plural, "plural": "claim" + plural},
		"connectionSecretKeys": []any{"username", "password", "endpoint"},
		"conversion": map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"conversionReviewVersions": []any{"v1"},
			"clientConfig":             map[string]any{"caBundle": "aHVi", "service": map[string]any{"name": "convert", "namespace": "hub-internal"}},
		}},
		"versions": []any{map[string]any{
			"name": "v1alpha1", "served": true, "referenceable": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object"}}}},
		}},
	}
	f.Create(f.hub, u)
	f.T.Cleanup(func() { f.Delete(f.hub, u) })
	u.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "Offered", "status": "True", "reason": "WatchingCompositeResourceClaim", "lastTransitionTime": "2026-01-02T03:04:05Z",
	}}}
	if err := f.hub.Status().Update(f.Ctx, u); err != nil {
		f.T.Fatal(err)
	}
	return u
}

// composition creates a Composition in the hub for a kind of the fixture's API group.
func (f *fixture) composition(name, plural string) *unstructured.Unstructured {
	f.T.Helper()
	u := object(compositionGVK, name+"."+f.group)
	u.SetLabels(map[string]string{"provider": "aws"})
	u.Object["spec"] = map[string]any{
		"compositeTypeRef": map[string]any{"apiVersion": f.group + "/v1alpha1", "kind": "Composite" + plural},
		"mode":             "Pipeline",
		"pipeline": []any{map[string]any{
			"step": "compose", "functionRef": map[string]any{"name": "function-auto-ready"},
		}},
	}
	f.Create(f.hub, u)
	f.T.Cleanup(func() { f.Delete(f.hub, u) })
	return u
}

// copy waits until the workload cluster has a copy of an object of the hub that check accepts.
func (f *fixture) copy(hub *unstructured.Unstructured, check func(*unstructured.Unstructured) error) *unstructured.Unstructured {
	f.T.Helper()
	u := object(hub.GroupVersionKind(), hub.GetName())
	f.Within("the copy of "+hub.GetName(), func() error {
		if err := f.workload.Get(f.Ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}
		if check != nil {
			return check(u)
		}
		return nil
	})
	return u
}

// gone waits until the workload cluster has no object of that name.
func (f *fixture) gone(hub *unstructured.Unstructured) {
	f.T.Helper()
	f.Within("the copy of "+hub.GetName()+" goes", func() error {
		u := object(hub.GroupVersionKind(), hub.GetName())
		err := f.workload.Get(f.Ctx, client.ObjectKeyFromObject(u), u)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return nil
		}
		return fmt.Errorf("it is there (%w)", err)
	})
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
	if i := slices.Index(labels, string(f.cluster)); i >= 0 {
		labels = slices.Replace(slices.Clone(labels), i, i+1, metric.ClusterValues(f.cluster)...)
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
