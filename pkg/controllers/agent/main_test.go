// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/fakefleet"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/agenttest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
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
	c, err := client.New(hub, client.Options{Scheme: agenttest.Scheme()})
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

// requests records the agent's requests to one API server about the objects of its fixture, and about those of none.
// Every agent reads what earlier tests left in a lane's servers.
type requests struct {
	fixture string

	mu   sync.Mutex
	seen []string

	// unanswered are the requests, except watches, without a response yet.
	unanswered atomic.Int32
}

// ofFixture matches the number of a request's fixture, as prepareFixture sets it.
var ofFixture = regexp.MustCompile(`\b(?:db|team-|target-)(\d+)\b`)

func newRequests(fixture int32) *requests { return &requests{fixture: strconv.Itoa(int(fixture))} }

// isOthers reports whether a request is only about another fixture's objects.
func (r *requests) isOthers(request string) bool {
	found := ofFixture.FindAllStringSubmatch(request, -1)
	return len(found) > 0 && !slices.ContainsFunc(found, func(match []string) bool { return match[1] == r.fixture })
}

func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return controllertest.RoundTripper(func(req *http.Request) (*http.Response, error) {
		request := req.Method + " " + req.URL.Path + "?" + req.URL.RawQuery
		if !r.isOthers(request) {
			r.mu.Lock()
			r.seen = append(r.seen, request)
			r.mu.Unlock()
			if !strings.Contains(request, "watch=true") {
				r.unanswered.Add(1)
				defer r.unanswered.Add(-1)
			}
		}
		return next.RoundTrip(req)
	})
}

// about returns the requests about objects, not watches, lists and discovery, whose path contains all parts.
func (r *requests) about(parts ...string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, s := range r.seen {
		if strings.Contains(s, "watch=true") || strings.Contains(s, "/leases") {
			continue
		}
		ok := true
		for _, p := range parts {
			ok = ok && strings.Contains(s, p)
		}
		if ok {
			out = append(out, s)
		}
	}
	return out
}

// writes returns the requests that are not reads.
func (r *requests) writes() []string {
	var out []string
	for _, s := range r.about() {
		if !strings.HasPrefix(s, http.MethodGet) {
			out = append(out, s)
		}
	}
	return out
}

// fixture is a hub and a workload cluster with an agent between them. It acts as their users and the hub's Crossplane.
type fixture struct {
	controllertest.Case

	hub, workload                 client.Client
	hubRequests, workloadRequests *requests
	number                        int32
	fleet                         *fakefleet.Fleet
	agent                         *agent
	looked                        *reportedClaims
	registry                      *prometheus.Registry
	cluster                       mcr.ClusterName
	identifier, class             string
	group, target, namespace      string
	workloadUser, hubUser         string
	grace                         time.Duration

	lane *lane

	// workloadConfig is for the workload cluster, and hubConfig is the manager's for the hub.
	workloadConfig, hubConfig *rest.Config

	// options change the agent's; nil for the tests' defaults.
	options func(*Options)

	// owner is the hub as the owner of objects in the cluster.
	owner hubidentity.Owner

	manager          *controllertest.Manager
	disengageCluster context.CancelFunc
}

// reportedClaims records which claims users received reports about.
type reportedClaims struct {
	*downstream.Metrics

	mu      sync.Mutex
	reasons map[multicluster.ObjectRequest]string
}

func (c *reportedClaims) Requirement(req multicluster.ObjectRequest, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reasons[req] = reason
	if reason == "" {
		delete(c.reasons, req)
	}
	c.Metrics.Requirement(req, reason)
}

// of returns how many of these claims are in a group.
func (c *reportedClaims) of(group string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for req := range c.reasons {
		if req.Kind.Group == group {
			n++
		}
	}
	return n
}

var fixtures atomic.Int32 //nolint:gochecknoglobals // Numbers the fixtures.

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
	n := fixtures.Add(1)
	f := &fixture{
		Case:        controllertest.Case{T: t, Ctx: t.Context(), Patience: patience},
		hubRequests: newRequests(n), workloadRequests: newRequests(n),
		number:     n,
		fleet:      &fakefleet.Fleet{},
		registry:   prometheus.NewRegistry(),
		cluster:    mcr.ClusterName(fmt.Sprintf("capi/fleet/w%d", n)),
		identifier: fmt.Sprintf("identifier-%d", n),
		class:      fmt.Sprintf("class-%d", n),
		group:      fmt.Sprintf("db%d.acmeco.org", n),
		owner:      hubidentity.Owner{ID: agenttest.OurHub},
		target:     fmt.Sprintf("target-%d", n),
		namespace:  fmt.Sprintf("team-%d", n),
		grace:      time.Second,
	}
	f.lane, f.hubConfig, f.workloadConfig = l, l.hub.Config, l.workload
	f.hub = controllertest.NewClient(t, f.hubConfig, agenttest.Scheme())
	f.workload = controllertest.NewClient(t, f.workloadConfig, agenttest.Scheme())
	f.Create(f.hub, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.target}})
	f.Create(f.workload, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}})
	class := &fleetv1alpha1.EnrollmentClass{
		ObjectMeta: metav1.ObjectMeta{Name: f.class},
		Spec: fleetv1alpha1.EnrollmentClassSpec{Agent: fleetv1alpha1.AgentSpec{
			Mode: fleetv1alpha1.AgentModeReadWrite, APIGroups: []string{f.group}, DefaultTargetNamespace: f.target,
		}},
	}
	for _, o := range options {
		o(class)
	}
	f.Create(f.hub, class)
	f.publish()
	return f
}

// start runs the agent and engages the cluster.
func (f *fixture) start() {
	f.T.Helper()
	hub := controllertest.Unlimited(f.hubConfig)
	hub.Impersonate.UserName = f.hubUser
	hub.Wrap(f.hubRequests.wrap)
	f.manager = controllertest.NewManager(f.T, hub, agenttest.Scheme())
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

	f.looked = &reportedClaims{Metrics: f.agent.requirements.metrics, reasons: map[multicluster.ObjectRequest]string{}}
	f.agent.requirements.reports.Metrics = f.looked

	f.fleet.Set(connection.Cluster{
		Name: f.cluster, State: connection.StateConnected, UID: f.kubeSystemUID(), Hub: f.owner,
		Enrolment: connection.Enrolment{
			Identifier: f.identifier,
			Class:      f.class,
			Object: connection.ObjectReference{
				GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
				Namespace:        "default", Name: f.class, UID: types.UID(f.class),
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
	workload := controllertest.Unlimited(f.workloadConfig)
	workload.Impersonate.UserName = f.workloadUser
	workload.Wrap(f.workloadRequests.wrap)
	disconnect, manager := f.manager.Connect(f.cluster, workload), f.manager
	f.disengageCluster = func() {
		disconnect()
		manager.Gate.Forget(f.cluster)
	}
}

// kubeSystemUID distinguishes the tests' workload clusters, as the UIDs of their kube-system namespaces do.
func (f *fixture) kubeSystemUID() string { return "kube-system of " + f.workloadConfig.Host }

// restart stops the agent and starts another one.
func (f *fixture) restart() {
	f.T.Helper()
	f.stopAgent()
	f.registry = prometheus.NewRegistry()
	f.start()
}

// settled waits until the agent is idle: nothing is queued or being reconciled.
func (f *fixture) settled() {
	f.T.Helper()
	f.AtRest(25, func() (seen, unanswered int) {
		return len(f.hubRequests.about()) + len(f.workloadRequests.about()),
			int(f.hubRequests.unanswered.Load() + f.workloadRequests.unanswered.Load())
	})
}

func (f *fixture) isRunning() bool { return f.agent != nil && !f.manager.IsStopped() }

// lookedAt waits until the agent, which may have been restarted, has reconciled a number of the fixture's claims.
func (f *fixture) lookedAt(claims int) {
	f.T.Helper()
	f.Within("the claims are looked at", func() error {
		if n := f.looked.of(f.group); n != claims {
			return fmt.Errorf("%d of %d are", n, claims)
		}
		return nil
	})
}

// InHub waits until the agent has seen an object of the hub.
func (f *fixture) inHub(obj *unstructured.Unstructured) {
	f.T.Helper()
	f.Within("the agent has seen "+obj.GetName()+" in the hub", func() error {
		w, ok := f.agent.workloads.Get(f.cluster)
		if !ok {
			return errors.New("the cluster is not engaged")
		}
		kind, ok := w.KindFor(f.crd().Name)
		if !ok {
			return errors.New("the kind is not followed")
		}
		_, err := f.agent.hub.Watcher.Get(kind, client.ObjectKeyFromObject(obj))
		return err
	})
}

// crd is the claim CRD as Crossplane makes it.
func (f *fixture) crd() *apiextensionsv1.CustomResourceDefinition {
	str := apiextensionsv1.JSONSchemaProps{Type: "string"}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "mysqlinstances." + f.group,
			Annotations: map[string]string{"hub.example.org/note": "stays in the hub"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apiextensions.crossplane.io/v1", Kind: "CompositeResourceDefinition", Name: f.xrdName(), UID: "x", Controller: new(true),
			}},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: f.group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "mysqlinstances", Kind: "MySQLInstance", Singular: "mysqlinstance", ListKind: "MySQLInstanceList", Categories: []string{"claim"},
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1alpha1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"version":   str,
							"storageGB": {Type: "integer", Minimum: new(1.0)},
							"tags":      {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &str}},
							"compositionRef": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
								"name": str,
							}},
							"compositeDeletePolicy": {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"Background"`)}},
							"resourceRef": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
								"apiVersion": str, "kind": str, "name": str,
							}},
							"writeConnectionSecretToRef": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"name": str}},
						}},
						"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"address": str,
							"conditions": {
								Type: "array", XListType: new("map"), XListMapKeys: []string{"type"},
								Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
									Type:     "object",
									Required: []string{"lastTransitionTime", "reason", "status", "type"},
									Properties: map[string]apiextensionsv1.JSONSchemaProps{
										"lastTransitionTime": {Type: "string", Format: "date-time"},
										"message":            str, "reason": str, "status": str, "type": str,
										"observedGeneration": {Type: "integer", Format: "int64"},
									},
								}},
							},
						}},
					},
				}},
			}},
		},
	}
}

func (f *fixture) xrdName() string { return "xmysqlinstances." + f.group }

// publish installs the claim CRD in the hub and offers it, as Crossplane does for an XRD.
func (f *fixture) publish() {
	f.T.Helper()
	f.Create(f.hub, f.crd())
	f.offer()
}

// offer creates the XRD that offers the claim kind.
func (f *fixture) offer() {
	f.T.Helper()
	xrd := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"group":      f.group,
			"claimNames": map[string]any{"kind": "MySQLInstance", "plural": "mysqlinstances"},
			"versions":   []any{map[string]any{"name": "v1alpha1", "served": true, "referenceable": true}},
		},
	}}
	xrd.SetGroupVersionKind(crossplane.XRDKind.GroupVersionKind)
	xrd.SetName(f.xrdName())
	f.Create(f.hub, xrd)
	f.Within("the hub serves the claim kind", func() error {
		return f.hub.List(f.Ctx, f.list())
	})
	xrd.Object["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "Established", "status": "True"}, map[string]any{"type": "Offered", "status": "True"},
	}}
	if err := f.hub.Status().Update(f.Ctx, xrd); err != nil {
		f.T.Fatal(err)
	}
}

func (f *fixture) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: f.group, Version: "v1alpha1", Kind: "MySQLInstance"}
}

func (f *fixture) list() *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(f.gvk().GroupVersion().WithKind("MySQLInstanceList"))
	return l
}

// servedPatience is how long a workload cluster may take to serve a claim kind, which it needs before a test begins. It
// is longer than patience: on a busy machine an API server alone can take a minute to serve a new kind.
const servedPatience = 4 * time.Minute

// served waits until the workload cluster serves the claim kind.
func (f *fixture) served() {
	f.T.Helper()
	setup := f.Case
	setup.Patience = servedPatience
	setup.Within("the workload cluster serves the claim kind", func() error { return f.workload.List(f.Ctx, f.list()) })
}

// object returns an empty claim.
func (f *fixture) object(namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(f.gvk())
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// claim creates a claim in the workload cluster.
func (f *fixture) claim(name string, edit ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	f.T.Helper()
	f.served()
	u := f.object(f.namespace, name)
	u.Object["spec"] = map[string]any{"version": "5.7", "storageGB": int64(20)}
	for _, e := range edit {
		e(u)
	}
	f.Create(f.workload, u)
	return u
}

func withSecret(name string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, name, "spec", "writeConnectionSecretToRef", "name")
	}
}

// get reads a claim, from the hub or the workload cluster.
func (f *fixture) get(c client.Client, namespace, name string) (*unstructured.Unstructured, error) {
	u := f.object(namespace, name)
	return u, c.Get(f.Ctx, client.ObjectKeyFromObject(u), u)
}

// pushed waits until a claim is in the hub, and returns it.
func (f *fixture) pushed(name string) *unstructured.Unstructured {
	f.T.Helper()
	var u *unstructured.Unstructured
	f.Within("claim "+name+" is pushed", func() (err error) {
		u, err = f.get(f.hub, f.target, name)
		return err
	})
	return u
}

// synced waits until a claim in the workload cluster has the condition AgentSynced with a reason, and returns it.
func (f *fixture) synced(name, reason string) *unstructured.Unstructured {
	f.T.Helper()
	var u *unstructured.Unstructured
	f.Within("claim "+name+" has AgentSynced with reason "+reason, func() (err error) {
		if u, err = f.get(f.workload, f.namespace, name); err != nil {
			return err
		}
		if c := propagation.AgentSynced(u); c["reason"] != reason {
			return fmt.Errorf("its condition is %v", c)
		}
		return nil
	})
	return u
}

// gone waits until a claim does not exist.
func (f *fixture) gone(c client.Client, namespace, name string) {
	f.T.Helper()
	f.Within("claim "+name+" is gone from "+namespace, func() error {
		u, err := f.get(c, namespace, name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it exists, %v: %w", u.Object, errors.Join(err, errors.New("not gone")))
	})
}

// ready acts as Crossplane when a claim's composite resource is ready.
func (f *fixture) ready(name, address string) {
	f.T.Helper()
	f.Within("Crossplane sets the status of "+name, func() error {
		u, err := f.get(f.hub, f.target, name)
		if err != nil {
			return err
		}
		u.Object["status"] = map[string]any{
			"address": address,
			"conditions": []any{
				map[string]any{"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": "2026-01-02T03:04:05Z"},
			},
		}
		return f.hub.Status().Update(f.Ctx, u)
	})
}

// connectionSecret publishes connection details as Crossplane does: in a Secret that the owner controls.
func (f *fixture) connectionSecret(name string, owner *unstructured.Unstructured, password string) *corev1.Secret {
	f.T.Helper()
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.target, Name: name},
		Type:       crossplane.SecretTypeConnection, Data: map[string][]byte{"password": []byte(password)},
	}
	if owner != nil {
		s.Namespace = owner.GetNamespace()
		s.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())}
	}
	f.Create(f.hub, s)
	return s
}

var _ index.Fleet = &connection.Provider{}

// hasOurFinalizer reports whether a claim bears the finalizer of the fixture's hub.
func hasOurFinalizer(claim *unstructured.Unstructured) bool {
	return slices.Contains(claim.GetFinalizers(), agenttest.OurFinalizer)
}
