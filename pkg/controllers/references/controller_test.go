// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	"sigs.k8s.io/yaml"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/fakefleet"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/pkg/references"
	"github.com/masthead-dev/masthead/pkg/references/testdata/managedexample"
)

// patience is the timeout of a test: shorter than SlowInterval, so that a change that should be noticed is not found by
// a periodic retry.
const (
	patience  = condition.SlowInterval - 5*time.Second
	className = "default"
	workloadA = mcr.ClusterName("capi/fleet/a")
)

var (
	api client.Client

	// apiConfig leads to the API server, and series are the controller's metrics.
	apiConfig *rest.Config
	series    = prometheus.NewRegistry()

	// requested is the number of the controller's requests to the workload cluster that are no watches.
	requested atomic.Int64

	// writes are those of them that write.
	writes atomic.Int64
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run uses one API server as the hub and as a workload cluster: the controller uses nothing of the hub but
// EnrollmentClasses.
func run(m *testing.M) int {
	ctrl.SetLogger(logr.Discard())
	env, err := testenv.New(testenv.CRDs(),
		filepath.Join(testenv.Root(), "pkg", "references", "testdata", "managedexample", "network.example.org_subnets.yaml"),
		filepath.Join("testdata", "referencegrants.yaml"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = env.Stop() }()
	cfg, err := testenv.Start(env)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot start the API server:", err)
		return 1
	}
	cfg.QPS = -1
	apiConfig = cfg
	if api, err = client.New(cfg, client.Options{Scheme: scheme()}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := start(ctx, cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if hubServer != nil {
			_ = hubServer.Stop()
		}
	}()
	return m.Run()
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, fleetv1alpha1.AddToScheme, managedexample.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

func start(ctx context.Context, cfg *rest.Config) error {
	class := &fleetv1alpha1.EnrollmentClass{
		ObjectMeta: metav1.ObjectMeta{Name: className},
		Spec: fleetv1alpha1.EnrollmentClassSpec{
			Agent:      fleetv1alpha1.AgentSpec{Mode: fleetv1alpha1.AgentModeDisabled},
			References: fleetv1alpha1.ReferencesSpec{Mode: fleetv1alpha1.ReferencesModeEnabled},
		},
	}
	if err := api.Create(ctx, class); err != nil {
		return err
	}
	mgr, err := newManager(cfg)
	if err != nil {
		return err
	}
	gate, fleet := multicluster.NewGate(), &fakefleet.Fleet{}
	fleet.Set(connection.Cluster{Name: workloadA, State: connection.StateConnected, Enrolment: connection.Enrolment{Class: className}})
	if err := Setup(mgr, Options{Fleet: fleet, Gate: gate, Registerer: series}); err != nil {
		return err
	}
	go func() { _ = mgr.Start(ctx) }()
	counted := rest.CopyConfig(cfg)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next} })
	cl, err := cluster.New(counted, func(o *cluster.Options) { o.Scheme = scheme() })
	if err != nil {
		return err
	}
	go func() { _ = cl.Start(ctx) }()
	gate.Open(workloadA)
	return mgr.Engage(ctx, workloadA, cl)
}

func newManager(cfg *rest.Config) (mcmanager.Manager, error) {
	return mcmanager.New(cfg, nil, ctrl.Options{Scheme: scheme(), Metrics: metricsserver.Options{BindAddress: "0"}})
}

type counting struct{ next http.RoundTripper }

func (c counting) RoundTrip(req *http.Request) (*http.Response, error) {
	if !strings.Contains(req.URL.RawQuery, "watch=true") {
		requested.Add(1)
	}
	if req.Method != http.MethodGet && !strings.Contains(req.URL.Path, "/events") {
		writes.Add(1)
	}
	return c.next.RoundTrip(req)
}

func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := api.Create(context.Background(), o); err != nil {
			t.Fatal(err)
		}
	}
}

func namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "refs-"}}
	create(t, ns)
	return ns.Name
}

func subnet(ns, name string, refs ...commonv1alpha1.GenericReference) *managedexample.Subnet {
	s := &managedexample.Subnet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	s.Spec.References.References = refs
	return s
}

func configMap(ns, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Data: data}
}

func secret(ns, name, token string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, StringData: map[string]string{"token": token}}
}

func toRegion(resource, name, from string) commonv1alpha1.GenericReference {
	return commonv1alpha1.GenericReference{Resource: resource, Name: name, FromFieldPath: from, ToFieldPath: "spec.forProvider.region"}
}

// await waits until an object has the condition with a reason, about its latest generation, and returns it.
func await(t *testing.T, ns, name, reason string) *managedexample.Subnet {
	t.Helper()
	return awaitThat(t, ns, name, "the reason "+reason, func(s *managedexample.Subnet, c metav1.Condition) bool {
		return c.Reason == reason && c.ObservedGeneration == s.Generation
	})
}

func awaitThat(t *testing.T, ns, name, what string, is func(*managedexample.Subnet, metav1.Condition) bool) *managedexample.Subnet {
	t.Helper()
	s, c := &managedexample.Subnet{}, metav1.Condition{}
	err := testenv.Poll(context.Background(), patience, func(ctx context.Context) (bool, error) {
		if err := api.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, s); err != nil {
			return false, err
		}
		x := s.GetCondition(commonv1alpha1.ConditionReferencesResolved)
		c = metav1.Condition{Reason: string(x.Reason), Message: x.Message, ObservedGeneration: x.ObservedGeneration, Status: metav1.ConditionStatus(x.Status)}
		return is(s, c), nil
	})
	if err != nil {
		t.Fatalf("%s/%s has not come to %s: %v: %+v, %+v", ns, name, what, err, c, s.Spec.ForProvider)
	}
	return s
}

// TestRegionFromConfigMap is the seed's case: several objects take their region from one ConfigMap, which is created
// after them.
func TestRegionFromConfigMap(t *testing.T) {
	ns := namespace(t)
	create(t, subnet(ns, "a", toRegion("configmaps", "settings", "data.region")), subnet(ns, "b", toRegion("configmaps", "settings", "data.region")))
	s := await(t, ns, "a", commonv1alpha1.ReasonSourceNotFound)
	want := `Cannot resolve spec.references[0]: configmaps "settings" in the namespace "` + ns + `": it does not exist`
	if c := s.GetCondition(commonv1alpha1.ConditionReferencesResolved); c.Message != want {
		t.Errorf("want %q, got %q", want, c.Message)
	}
	await(t, ns, "b", commonv1alpha1.ReasonSourceNotFound)

	create(t, configMap(ns, "settings", map[string]string{"region": "eu-west-1"}))
	for _, name := range []string{"a", "b"} {
		s := await(t, ns, name, commonv1alpha1.ReasonResolved)
		if s.Spec.ForProvider.Region != "eu-west-1" {
			t.Errorf("%s was not filled: %+v", name, s.Spec.ForProvider)
		}
		var managers []string
		for _, m := range s.ManagedFields {
			managers = append(managers, m.Manager)
		}
		if !strings.Contains(strings.Join(managers, " "), references.FieldManager) {
			t.Errorf("%s has no field manager of references: %v", name, managers)
		}
	}

	// It was resolved once: later changes of the source do not matter.
	before := writes.Load()
	settings := configMap(ns, "settings", map[string]string{"region": "us-east-1"})
	if err := api.Update(context.Background(), settings); err != nil {
		t.Fatal(err)
	}
	create(t, subnet(ns, "later", toRegion("configmaps", "settings", "data.region")))
	if s := await(t, ns, "later", commonv1alpha1.ReasonResolved); s.Spec.ForProvider.Region != "us-east-1" {
		t.Errorf("want the region as it is now, got %+v", s.Spec.ForProvider)
	}
	if s := await(t, ns, "a", commonv1alpha1.ReasonResolved); s.Spec.ForProvider.Region != "eu-west-1" {
		t.Errorf("want the region as it was, got %+v", s.Spec.ForProvider)
	}
	if n := writes.Load() - before; n > 2 {
		t.Errorf("want the object and its condition to be written, got %d writes", n)
	}
}

func TestFollowSourceAndFieldOfAnotherKind(t *testing.T) {
	ns := namespace(t)
	follow := toRegion("subnets", "main", "spec.forProvider.region")
	follow.Group, follow.Policy = &managedexample.GroupVersion.Group, &commonv1alpha1.ReferencePolicy{Resolve: commonv1alpha1.ResolveAlways}
	main := subnet(ns, "main")
	main.Spec.ForProvider.Region = "eu-west-1"
	create(t, main, subnet(ns, "follower", follow))
	await(t, ns, "follower", commonv1alpha1.ReasonResolved)
	main.Spec.ForProvider.Region = "us-east-1"
	if err := api.Update(context.Background(), main); err != nil {
		t.Fatal(err)
	}
	awaitThat(t, ns, "follower", "the new region", func(s *managedexample.Subnet, _ metav1.Condition) bool {
		return s.Spec.ForProvider.Region == "us-east-1"
	})
}

func TestReadSecretThroughReadableField(t *testing.T) {
	ns := namespace(t)
	marked := commonv1alpha1.GenericReference{Resource: "secrets", Name: "token", FromFieldPath: "data.token", ToFieldPath: "spec.forProvider.token"}
	create(t, secret(ns, "token", "hunter2"), subnet(ns, "attack", toRegion("secrets", "token", "data.token")), subnet(ns, "marked", marked))
	s := await(t, ns, "attack", commonv1alpha1.ReasonSecretNotPermitted)
	if strings.Contains(fmt.Sprintf("%+v", s), "hunter2") {
		t.Errorf("the object holds the secret: %+v", s)
	}
	if s := await(t, ns, "marked", commonv1alpha1.ReasonResolved); s.Spec.ForProvider.Token != "hunter2" {
		t.Errorf("a field that the author marked was not filled")
	}
}

// TestReadSecretThroughAnotherObject: after one object has taken a value out of a Secret into a field that is marked
// for it, another object takes it no further than into such a field.
func TestReadSecretThroughAnotherObject(t *testing.T) {
	ns, group := namespace(t), managedexample.GroupVersion.Group
	from := func(to string) commonv1alpha1.GenericReference {
		return commonv1alpha1.GenericReference{
			Group: &group, Resource: "subnets", Name: "marked", FromFieldPath: "spec.forProvider.token", ToFieldPath: to,
		}
	}
	marked := commonv1alpha1.GenericReference{Resource: "secrets", Name: "token", FromFieldPath: "data.token", ToFieldPath: "spec.forProvider.token"}
	create(t, secret(ns, "token", "hunter2"), subnet(ns, "marked", marked))
	await(t, ns, "marked", commonv1alpha1.ReasonResolved)
	create(t, subnet(ns, "attack", from("spec.forProvider.region")), subnet(ns, "further", from("spec.forProvider.token")))
	s := await(t, ns, "attack", commonv1alpha1.ReasonSecretNotPermitted)
	if strings.Contains(fmt.Sprintf("%+v", s), "hunter2") {
		t.Errorf("the object holds the secret: %+v", s)
	}
	if s := await(t, ns, "further", commonv1alpha1.ReasonResolved); s.Spec.ForProvider.Token != "hunter2" {
		t.Errorf("a field that the author marked was not filled")
	}
}

func TestReadSecretThroughRefusalOfTheAPIServer(t *testing.T) {
	ns := namespace(t)
	// The pattern of the field refuses it, and the API server repeats what it refuses.
	create(t, secret(ns, "token", "hunter2!"), subnet(ns, "attack", commonv1alpha1.GenericReference{
		Resource: "secrets", Name: "token", FromFieldPath: "data.token", ToFieldPath: "spec.forProvider.token",
	}))
	got := await(t, ns, "attack", commonv1alpha1.ReasonTargetRejected)
	if strings.Contains(fmt.Sprintf("%+v", got), "hunter2") {
		t.Errorf("the condition repeats the secret: %+v", got.Status)
	}
}

// TestValueOfAnotherType: a ConfigMap has only text, and the field takes a number.
func TestValueOfAnotherType(t *testing.T) {
	ns := namespace(t)
	mask := commonv1alpha1.GenericReference{Resource: "configmaps", Name: "settings", FromFieldPath: "data.mask", ToFieldPath: "spec.forProvider.mask"}
	create(t, configMap(ns, "settings", map[string]string{"region": "eu-west-1", "mask": "24"}),
		subnet(ns, "subnet", toRegion("configmaps", "settings", "data.region"), mask))
	got := await(t, ns, "subnet", commonv1alpha1.ReasonTargetRejected)
	const want = "Cannot apply the resolved values: .spec.forProvider.mask: expected numeric (int or float), got string"
	if c := got.GetCondition(commonv1alpha1.ConditionReferencesResolved); c.Message != want {
		t.Errorf("want %q, got %q", want, c.Message)
	}
}

// TestFieldThatIsNotInTheSchema: a mistake in toFieldPath is reported, and names the field.
func TestFieldThatIsNotInTheSchema(t *testing.T) {
	ns := namespace(t)
	create(t, configMap(ns, "settings", map[string]string{"region": "eu-west-1"}), subnet(ns, "subnet", commonv1alpha1.GenericReference{
		Resource: "configmaps", Name: "settings", FromFieldPath: "data.region", ToFieldPath: "spec.forProvider.regoin",
	}))
	got := await(t, ns, "subnet", commonv1alpha1.ReasonTargetRejected)
	const want = "Cannot apply the resolved values: .spec.forProvider.regoin: field not declared in schema"
	if c := got.GetCondition(commonv1alpha1.ConditionReferencesResolved); c.Message != want {
		t.Errorf("want %q, got %q", want, c.Message)
	}
}

// TestApplyThatFails: a webhook that does not answer is reported, although it is no verdict about the values.
func TestApplyThatFails(t *testing.T) {
	ns := namespace(t)
	fail, none := admissionv1.Fail, admissionv1.SideEffectClassNone
	webhook := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "down.example.org", FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig:      admissionv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/")},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule: admissionv1.Rule{
					APIGroups: []string{managedexample.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"subnets"},
				},
			}},
		}},
	}
	create(t, webhook)
	probe := subnet(ns, "probe")
	create(t, probe)
	err := testenv.Poll(t.Context(), patience, func(ctx context.Context) (bool, error) {
		probe.Labels = map[string]string{"version": probe.ResourceVersion}
		return api.Update(ctx, probe) != nil, nil // The API server reads its webhooks by a watch.
	})
	if err != nil {
		t.Fatal(err)
	}
	create(t, configMap(ns, "settings", map[string]string{"region": "eu-west-1"}), subnet(ns, "subnet", toRegion("configmaps", "settings", "data.region")))
	got := await(t, ns, "subnet", commonv1alpha1.ReasonUnavailable)
	const want = "The API server did not apply the resolved values: InternalError"
	if c := got.GetCondition(commonv1alpha1.ConditionReferencesResolved); c.Message != want || c.Status != corev1.ConditionUnknown {
		t.Errorf("want %q, got %+v", want, c)
	}
	if err := api.Delete(t.Context(), webhook); err != nil {
		t.Fatal(err)
	}
	await(t, ns, "subnet", commonv1alpha1.ReasonResolved)
}

// TestFightWithAnotherApplier: a field that a tool applies from Git, be it empty, is left to that tool, whose name the
// condition has. When it is gone from there, it is filled.
func TestFightWithAnotherApplier(t *testing.T) {
	ns := namespace(t)
	create(t, configMap(ns, "settings", map[string]string{"region": "eu-west-1"}))
	fromGit := func(region map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": managedexample.GroupVersion.String(), "kind": "Subnet", "metadata": map[string]any{"namespace": ns, "name": "subnet"},
			"spec": map[string]any{"forProvider": region, "references": []any{
				map[string]any{"resource": "configmaps", "name": "settings", "fromFieldPath": "data.region", "toFieldPath": "spec.forProvider.region"},
			}},
		}}
	}
	git := client.ApplyConfigurationFromUnstructured(fromGit(map[string]any{"region": "", "mask": int64(24)}))
	if err := api.Apply(t.Context(), git, client.FieldOwner("kustomize-controller")); err != nil {
		t.Fatal(err)
	}
	s := await(t, ns, "subnet", commonv1alpha1.ReasonTargetRejected)
	const want = `Cannot apply the resolved values: spec.forProvider.region: the field is applied by "kustomize-controller": ` +
		`remove it from what that applies`
	if c := s.GetCondition(commonv1alpha1.ConditionReferencesResolved); c.Message != want || s.Spec.ForProvider.Region != "" {
		t.Errorf("want %q and no value, got %q and %q", want, c.Message, s.Spec.ForProvider.Region)
	}
	git = client.ApplyConfigurationFromUnstructured(fromGit(map[string]any{"mask": int64(24)}))
	if err := api.Apply(t.Context(), git, client.FieldOwner("kustomize-controller")); err != nil {
		t.Fatal(err)
	}
	if s := await(t, ns, "subnet", commonv1alpha1.ReasonResolved); s.Spec.ForProvider.Region != "eu-west-1" {
		t.Errorf("want the region, got %+v", s.Spec.ForProvider)
	}
}

// TestWaitForReadiness: a field is filled as soon as another object is ready, and not before.
func TestWaitForReadiness(t *testing.T) {
	ns, group := namespace(t), managedexample.GroupVersion.Group
	create(t, configMap(ns, "settings", map[string]string{"region": "eu-west-1"}), subnet(ns, "network"), subnet(ns, "subnet",
		commonv1alpha1.GenericReference{
			Group: &group, Resource: "subnets", Name: "network", FromFieldPath: "status.conditions[type=Ready].status", When: "self == 'True'",
		}, toRegion("configmaps", "settings", "data.region")))
	await(t, ns, "subnet", commonv1alpha1.ReasonFieldNotFound)
	becomes := func(ready xpv2.Condition) {
		t.Helper()
		network := &managedexample.Subnet{}
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "network"}, network); err != nil {
			t.Fatal(err)
		}
		network.SetConditions(ready)
		if err := api.Status().Update(t.Context(), network); err != nil {
			t.Fatal(err)
		}
	}
	becomes(xpv2.Creating())
	if s := await(t, ns, "subnet", commonv1alpha1.ReasonNotReady); s.Spec.ForProvider.Region != "" {
		t.Errorf("want no region yet, got %+v", s.Spec.ForProvider)
	}
	becomes(xpv2.Available())
	if s := await(t, ns, "subnet", commonv1alpha1.ReasonResolved); s.Spec.ForProvider.Region != "eu-west-1" {
		t.Errorf("want the region, got %+v", s.Spec.ForProvider)
	}
}

// TestNameFromOwnField: the object says by a field of its own which ConfigMap it takes its region from.
func TestNameFromOwnField(t *testing.T) {
	ns := namespace(t)
	ref := toRegion("configmaps", "", "data.region")
	ref.NameFieldPath = "spec.forProvider.vpcID"
	create(t, configMap(ns, "of-vpc-1", map[string]string{"region": "eu-west-1"}), subnet(ns, "subnet", ref))
	s := await(t, ns, "subnet", commonv1alpha1.ReasonFieldNotFound)
	s.Spec.ForProvider.VPCID = "of-vpc-1"
	if err := api.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if s := await(t, ns, "subnet", commonv1alpha1.ReasonResolved); s.Spec.ForProvider.Region != "eu-west-1" {
		t.Errorf("want the region, got %+v", s.Spec.ForProvider)
	}
}

// TestSelector: a field follows the only object with some labels, and is left alone when it is not the only one.
func TestSelector(t *testing.T) {
	ns := namespace(t)
	settings := configMap(ns, "a", map[string]string{"region": "eu-west-1"})
	settings.Labels = map[string]string{"role": "settings"}
	ref := toRegion("configmaps", "", "data.region")
	ref.Selector = &commonv1alpha1.ReferenceSelector{MatchLabels: settings.Labels}
	ref.Policy = &commonv1alpha1.ReferencePolicy{Resolve: commonv1alpha1.ResolveAlways}
	create(t, settings, configMap(ns, "b", nil), subnet(ns, "subnet", ref))
	s := await(t, ns, "subnet", commonv1alpha1.ReasonResolved)
	const want = "All references are resolved; changes of their sources are noticed within two minutes only, since objects are selected by labels"
	if c := s.GetCondition(commonv1alpha1.ConditionReferencesResolved); c.Message != want || s.Spec.ForProvider.Region != "eu-west-1" {
		t.Errorf("want %q and the region, got %q and %+v", want, c.Message, s.Spec.ForProvider)
	}
	again := configMap(ns, "c", nil)
	again.Labels = settings.Labels
	create(t, again, subnet(ns, "later", ref))
	if s := await(t, ns, "later", commonv1alpha1.ReasonAmbiguous); s.Spec.ForProvider.Region != "" {
		t.Errorf("want no region, got %+v", s.Spec.ForProvider)
	}
}

func TestReadOtherNamespace(t *testing.T) {
	ns, victim := namespace(t), namespace(t)
	ref := toRegion("configmaps", "settings", "data.region")
	ref.Namespace = &victim
	create(t, configMap(victim, "settings", map[string]string{"region": "of the victim"}), subnet(ns, "attack", ref))
	s := await(t, ns, "attack", commonv1alpha1.ReasonNotPermitted)
	if s.Spec.ForProvider.Region != "" {
		t.Errorf("it was filled: %+v", s.Spec.ForProvider)
	}
	// The owner of the other namespace grants it, to one name.
	create(t, grant(victim, ns, "settings"), configMap(victim, "other", map[string]string{"region": "not granted"}))
	if s := await(t, ns, "attack", commonv1alpha1.ReasonResolved); s.Spec.ForProvider.Region != "of the victim" {
		t.Errorf("what was granted was not filled: %+v", s.Spec.ForProvider)
	}
	ref.Name = "other"
	create(t, subnet(ns, "another", ref))
	await(t, ns, "another", commonv1alpha1.ReasonNotPermitted)
}

// grant is a ReferenceGrant by the owner of a namespace, for the Subnets of another one.
func grant(by, to, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant",
		"metadata": map[string]any{"namespace": by, "name": "grant"},
		"spec": map[string]any{
			"from": []any{map[string]any{"group": managedexample.GroupVersion.Group, "kind": "Subnet", "namespace": to}},
			"to":   []any{map[string]any{"group": "", "kind": "ConfigMap", "name": name}},
		},
	}}
}

// TestGoOnReadingOtherNamespaceAfterGrantIsRevoked: a field follows its source as long as the owner of the source
// permits it.
func TestGoOnReadingOtherNamespaceAfterGrantIsRevoked(t *testing.T) {
	ns, owner := namespace(t), namespace(t)
	follow, once := toRegion("configmaps", "settings", "data.region"), toRegion("configmaps", "settings", "data.region")
	follow.Namespace, follow.Policy = &owner, &commonv1alpha1.ReferencePolicy{Resolve: commonv1alpha1.ResolveAlways}
	once.Namespace = &owner
	settings, granted := configMap(owner, "settings", map[string]string{"region": "eu-west-1"}), grant(owner, ns, "settings")
	create(t, settings, subnet(ns, "follower", follow), subnet(ns, "once", once))
	await(t, ns, "follower", commonv1alpha1.ReasonNotPermitted)
	create(t, granted)
	for _, name := range []string{"follower", "once"} {
		if s := await(t, ns, name, commonv1alpha1.ReasonResolved); s.Spec.ForProvider.Region != "eu-west-1" {
			t.Errorf("what was granted was not filled into %s: %+v", name, s.Spec.ForProvider)
		}
	}

	if err := api.Delete(context.Background(), granted); err != nil {
		t.Fatal(err)
	}
	await(t, ns, "follower", commonv1alpha1.ReasonNotPermitted)
	settings.Data["region"] = "us-east-1"
	if err := api.Update(context.Background(), settings); err != nil {
		t.Fatal(err)
	}
	create(t, grant(owner, ns, "something else"), subnet(ns, "later", once))
	await(t, ns, "later", commonv1alpha1.ReasonNotPermitted)
	for _, name := range []string{"follower", "once"} {
		s := &managedexample.Subnet{}
		if err := api.Get(context.Background(), client.ObjectKey{Namespace: ns, Name: name}, s); err != nil {
			t.Fatal(err)
		}
		if s.Spec.ForProvider.Region != "eu-west-1" {
			t.Errorf("%s has what it may not reference any more: %+v", name, s.Spec.ForProvider)
		}
	}
	// A reference that is resolved once was permitted when it was resolved.
	await(t, ns, "once", commonv1alpha1.ReasonResolved)
}

// TestKindThatIsServedLater: an object that waits for a kind is reconciled again as soon as the kind is served, also if
// the reference is optional.
func TestKindThatIsServedLater(t *testing.T) {
	ns, group := namespace(t), "later.example.org"
	required, optional := toRegion("regions", "main", "spec.name"), toRegion("regions", "main", "spec.name")
	required.Group, optional.Group = &group, &group
	optional.Policy = &commonv1alpha1.ReferencePolicy{Resolution: commonv1alpha1.ResolutionOptional}
	create(t, subnet(ns, "required", required), subnet(ns, "optional", optional))
	await(t, ns, "required", commonv1alpha1.ReasonKindNotServed)
	await(t, ns, "optional", commonv1alpha1.ReasonResolved)

	crd := openDefinition(group, "Region", "regions")
	create(t, crd)
	region := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Region", "metadata": map[string]any{"namespace": ns, "name": "main"}, "spec": map[string]any{"name": "eu-west-1"},
	}}
	createServed(t, region)
	for _, name := range []string{"required", "optional"} {
		awaitThat(t, ns, name, "the region", func(s *managedexample.Subnet, _ metav1.Condition) bool {
			return s.Spec.ForProvider.Region == "eu-west-1"
		})
	}
}

// openDefinition is the definition of a namespaced kind that accepts any content.
func openDefinition(group, kind, plural string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: new(true),
				}},
			}},
		},
	}
}

// createServed creates an object of a kind that is served in a moment.
func createServed(t *testing.T, obj client.Object) {
	t.Helper()
	createServedBy(t, api, obj)
}

func createServedBy(t *testing.T, c client.Client, obj client.Object) {
	t.Helper()
	err := testenv.Poll(context.Background(), patience, func(ctx context.Context) (bool, error) {
		err := c.Create(ctx, obj)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return false, nil
		}
		return true, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestReadClusterScopedResource(t *testing.T) {
	ns := namespace(t)
	create(t, subnet(ns, "attack", toRegion("namespaces", "kube-system", "metadata.uid")))
	await(t, ns, "attack", commonv1alpha1.ReasonNotPermitted)
}

func TestKeepControllerBusyByCycle(t *testing.T) {
	ns := namespace(t)
	group := managedexample.GroupVersion.Group
	of := func(name string) commonv1alpha1.GenericReference {
		return commonv1alpha1.GenericReference{
			Variables: []commonv1alpha1.ReferenceVariable{{Name: "mask", FromRef: commonv1alpha1.ReferenceSource{
				Group: &group, Resource: "subnets", Name: name, FieldPath: "spec.forProvider.mask",
			}}},
			Expression: "variables.mask + 1", ToFieldPath: "spec.forProvider.mask", Policy: &commonv1alpha1.ReferencePolicy{Resolve: commonv1alpha1.ResolveAlways},
		}
	}
	a, b := subnet(ns, "a", of("b")), subnet(ns, "b", of("a"))
	a.Spec.ForProvider.Mask, b.Spec.ForProvider.Mask = new(int64), new(int64)
	create(t, a, b)
	await(t, ns, "a", commonv1alpha1.ReasonCycle)
	s := await(t, ns, "b", commonv1alpha1.ReasonCycle)
	if c := s.GetCondition(commonv1alpha1.ConditionReferencesResolved); !strings.Contains(c.Message, "These objects reference each other") {
		t.Errorf("the condition does not say what is wrong: %+v", c)
	}
	// The user breaks the cycle.
	s.Spec.References.References = nil
	if err := api.Update(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	await(t, ns, "a", commonv1alpha1.ReasonResolved)
}

// TestAtRest checks that objects whose references are resolved cost no requests.
func TestAtRest(t *testing.T) {
	ns := namespace(t)
	create(t, configMap(ns, "settings", map[string]string{"region": "eu-west-1"}))
	for i := range 20 {
		create(t, subnet(ns, fmt.Sprintf("s%d", i), toRegion("configmaps", "settings", "data.region")))
	}
	for i := range 20 {
		await(t, ns, fmt.Sprintf("s%d", i), commonv1alpha1.ReasonResolved)
	}
	// Something else is resolved: after that, everything before it has been reconciled.
	quiet := requested.Load()
	create(t, subnet(ns, "last", toRegion("configmaps", "settings", "data.region")))
	await(t, ns, "last", commonv1alpha1.ReasonResolved)
	if n := requested.Load() - quiet; n > 10 {
		t.Errorf("resolving one object took %d requests", n)
	}
}

func TestNotDeclared(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := api.Get(context.Background(), client.ObjectKey{Name: "enrollmentclasses.fleet.masthead.dev"}, crd); err != nil {
		t.Fatal(err)
	}
	if d := declaredBy(crd); d != nil {
		t.Errorf("a kind is taken for one that declares references: %+v", d.kind)
	}
}

// TestSamples checks that the samples do what docs/references.md says.
func TestSamples(t *testing.T) {
	ns := namespace(t)
	for _, file := range []string{"subnets.yaml", "expression.yaml"} {
		data, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "samples", "references", file))
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(data), "\n---\n") {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
				t.Fatal(err)
			}
			u.SetNamespace(ns)
			create(t, u)
		}
	}
	if s := await(t, ns, "second", commonv1alpha1.ReasonResolved); s.Spec.ForProvider.Region != "eu-west-1" || s.Spec.ForProvider.VPCID != "vpc-1" {
		t.Errorf("the sample was not filled: %+v", s.Spec.ForProvider)
	}
	if s := await(t, ns, "computed", commonv1alpha1.ReasonResolved); s.Spec.ForProvider.VPCID != "vpc:eu-west-1:123456789012" || s.Spec.ForProvider.Token != "replaceme" {
		t.Errorf("the sample was not filled: %+v", s.Spec.ForProvider)
	}
}
