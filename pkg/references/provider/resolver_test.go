// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/references"
	"github.com/masthead-dev/masthead/pkg/references/testdata/managedexample"
)

const crdFile = "network.example.org_subnets.yaml"

var (
	api client.Client
	mgr manager.Manager
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	env, err := testenv.New(filepath.Join(testenv.Root(), "pkg", "references", "testdata", "managedexample", crdFile),
		filepath.Join(testenv.Root(), "pkg", "controllers", "references", "testdata", "referencegrants.yaml"))
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
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, managedexample.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if mgr, err = ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		// The reconciler of a test reads what it has just written.
		NewClient: func(cfg *rest.Config, o client.Options) (client.Client, error) {
			o.Cache = nil
			return client.New(cfg, o)
		},
	}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	api = mgr.GetClient()
	return m.Run()
}

// schemaOfSubnets is the schema in the provider's package.
func schemaOfSubnets(t *testing.T) *references.Schema {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testenv.Root(), "pkg", "references", "testdata", "managedexample", crdFile))
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(data, &crd); err != nil {
		t.Fatal(err)
	}
	return references.NewSchema(crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
}

// external is an external API that keeps what was created, and counts calls.
type external struct {
	mu                           sync.Mutex
	connected, observed, created int
	region                       string
	there                        bool
}

func (e *external) Connect(context.Context, resource.Managed) (managed.ExternalClient, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.connected++
	return e, nil
}

func (e *external) Observe(_ context.Context, mg resource.Managed) (managed.ExternalObservation, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.observed++
	e.region = mg.(*managedexample.Subnet).Spec.ForProvider.Region //nolint:forcetypeassert // A test.
	return managed.ExternalObservation{ResourceExists: e.there, ResourceUpToDate: true}, nil
}

func (e *external) Create(context.Context, resource.Managed) (managed.ExternalCreation, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.created++
	e.there = true
	return managed.ExternalCreation{}, nil
}

func (e *external) Update(context.Context, resource.Managed) (managed.ExternalUpdate, error) {
	return managed.ExternalUpdate{}, nil
}

func (e *external) Delete(context.Context, resource.Managed) (managed.ExternalDelete, error) {
	return managed.ExternalDelete{}, nil
}

func (e *external) Disconnect(context.Context) error { return nil }

// counting counts applies.
type counting struct {
	client.Client

	applied int
}

func (c *counting) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	c.applied++
	return c.Client.Apply(ctx, obj, opts...)
}

func namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "refs-"}}
	if err := api.Create(context.Background(), ns); err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

func subnet(ns string, refs ...commonv1alpha1.GenericReference) *managedexample.Subnet {
	return &managedexample.Subnet{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "subnet"},
		Spec:       managedexample.SubnetSpec{References: commonv1alpha1.References{References: refs}},
	}
}

func get(t *testing.T, ns string) *managedexample.Subnet {
	t.Helper()
	s := &managedexample.Subnet{}
	if err := api.Get(context.Background(), types.NamespacedName{Namespace: ns, Name: "subnet"}, s); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestManagedReconciler runs Crossplane's real reconciler, which waits for a source, and then creates the resource that
// needs it.
func TestManagedReconciler(t *testing.T) {
	ctx := context.Background()
	ns := namespace(t)
	e, writes := &external{}, &counting{Client: api}
	r := managed.NewReconciler(mgr, resource.ManagedKind(managedexample.SubnetKind),
		managed.WithExternalConnector(e), managed.WithTimeout(time.Minute), managed.WithInitializers(),
		managed.WithReferenceResolver(New(writes, mgr.GetAPIReader(), mgr.GetRESTMapper(), WithSchema(schemaOfSubnets(t)))))
	reconcileOnce := func() {
		t.Helper()
		if _, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: ns, Name: "subnet"}}); err != nil {
			t.Fatal(err)
		}
	}
	s := subnet(ns,
		commonv1alpha1.GenericReference{Resource: "configmaps", Name: "settings", FromFieldPath: "data.region", ToFieldPath: "spec.forProvider.region"},
		commonv1alpha1.GenericReference{Resource: "secrets", Name: "token", FromFieldPath: "data.token", ToFieldPath: "spec.forProvider.token"},
		commonv1alpha1.GenericReference{Resource: "configmaps", Name: "settings", FromFieldPath: "data.gateway", ToFieldPath: "spec.forProvider.routes[0].gateway"},
	)
	s.Spec.ForProvider.Routes = []managedexample.Route{{Name: "default"}, {Name: "other", Gateway: "10.0.0.2"}}
	if err := api.Create(ctx, s); err != nil {
		t.Fatal(err)
	}

	// The reference fails, so the external API receives no requests.
	reconcileOnce()
	reconcileOnce()
	if e.connected+e.observed+e.created > 0 || writes.applied > 0 {
		t.Errorf("the reconcile went on although a reference failed: %+v, %d writes", e, writes.applied)
	}
	c := get(t, ns).GetCondition(xpv2.TypeSynced)
	if c.Status != corev1.ConditionFalse || !strings.Contains(c.Message, `cannot resolve spec.references[0]: configmaps "settings" in the namespace "`+ns+`"`) {
		t.Errorf("the condition does not say what failed: %+v", c)
	}

	for _, source := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "settings"}, Data: map[string]string{"region": "eu-west-1", "gateway": "10.0.0.1"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "token"}, StringData: map[string]string{"token": "hunter2"}},
	} {
		if err := api.Create(ctx, source); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		reconcileOnce()
	}
	if e.created != 1 || e.region != "eu-west-1" {
		t.Errorf("want one creation with the region, got %+v", e)
	}
	if writes.applied != 1 {
		t.Errorf("want the values to be written once, got %d writes", writes.applied)
	}
	got := get(t, ns)
	if c := got.GetCondition(xpv2.TypeSynced); c.Status != corev1.ConditionTrue {
		t.Errorf("want Synced, got %+v", c)
	}
	if p := got.Spec.ForProvider; p.Token != "hunter2" || len(p.Routes) != 2 || p.Routes[0].Gateway != "10.0.0.1" || p.Routes[1].Gateway != "10.0.0.2" {
		t.Errorf("want every field filled and none lost, got %+v", p)
	}

	// A user's edit, and a value deleted to be filled again.
	got.Spec.ForProvider.Region = ""
	got.Spec.ForProvider.Mask = ptr.To[int64](24)
	if err := api.Update(ctx, got); err != nil {
		t.Fatal(err)
	}
	reconcileOnce()
	if p := get(t, ns).Spec.ForProvider; p.Region != "eu-west-1" || p.Token != "hunter2" || ptr.Deref(p.Mask, 0) != 24 || p.Routes[0].Gateway != "10.0.0.1" {
		t.Errorf("want the region filled again and everything else kept, got %+v", p)
	}
}

// TestReadOtherNamespaceWithTheProvidersRights: a provider can read every Secret, a user of a namespace cannot.
func TestReadOtherNamespaceWithTheProvidersRights(t *testing.T) {
	ctx := context.Background()
	ns, victim := namespace(t), namespace(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: victim, Name: "token"}, StringData: map[string]string{"token": "hunter2"}}
	if err := api.Create(ctx, secret); err != nil {
		t.Fatal(err)
	}
	s := subnet(ns, commonv1alpha1.GenericReference{
		Resource: "secrets", Name: "token", Namespace: &victim, FromFieldPath: "data.token", ToFieldPath: "spec.forProvider.token",
	})
	if err := api.Create(ctx, s); err != nil {
		t.Fatal(err)
	}
	err := New(api, mgr.GetAPIReader(), mgr.GetRESTMapper(), WithSchema(schemaOfSubnets(t))).ResolveReferences(ctx, s)
	if err == nil || !strings.Contains(err.Error(), "no ReferenceGrant") || get(t, ns).Spec.ForProvider.Token != "" {
		t.Errorf("want a refusal, got %v", err)
	}
}

// TestReferenceGrants: only the owner of another namespace permits a reference.
func TestReferenceGrants(t *testing.T) {
	ctx := context.Background()
	ns, owner := namespace(t), namespace(t)
	s := subnet(ns, commonv1alpha1.GenericReference{
		Resource: "configmaps", Name: "settings", Namespace: &owner, FromFieldPath: "data.region", ToFieldPath: "spec.forProvider.region",
	})
	grant := func(namespace string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant",
			"metadata": map[string]any{"namespace": namespace, "name": "grant"},
			"spec": map[string]any{
				"from": []any{map[string]any{"group": managedexample.GroupVersion.Group, "kind": "Subnet", "namespace": ns}},
				"to":   []any{map[string]any{"group": "", "kind": "ConfigMap", "name": "settings"}},
			},
		}}
	}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: owner, Name: "settings"}, Data: map[string]string{"region": "eu-west-1"}}
	// A grant in the user's own namespace is not one by the owner of the source.
	for _, o := range []client.Object{settings, s, grant(ns)} {
		if err := api.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	granting := New(api, mgr.GetAPIReader(), mgr.GetRESTMapper(), WithSchema(schemaOfSubnets(t)), WithReferenceGrants(mgr.GetAPIReader()))
	if err := granting.ResolveReferences(ctx, s); err == nil || !strings.Contains(err.Error(), "no ReferenceGrant") {
		t.Errorf("want a refusal, got %v", err)
	}
	if err := api.Create(ctx, grant(owner)); err != nil {
		t.Fatal(err)
	}
	without := New(api, mgr.GetAPIReader(), mgr.GetRESTMapper(), WithSchema(schemaOfSubnets(t)))
	if err := without.ResolveReferences(ctx, s); err == nil || !strings.Contains(err.Error(), "no ReferenceGrant") {
		t.Errorf("want a refusal without grants, got %v", err)
	}
	if err := granting.ResolveReferences(ctx, s); err != nil || get(t, ns).Spec.ForProvider.Region != "eu-west-1" {
		t.Errorf("want what is granted to be filled in, got %v: %+v", err, get(t, ns).Spec.ForProvider)
	}
}

// TestValueOfAnotherType: a ConfigMap has only text, and the field takes a number.
func TestValueOfAnotherType(t *testing.T) {
	ctx := context.Background()
	ns := namespace(t)
	s := subnet(ns, commonv1alpha1.GenericReference{
		Resource: "configmaps", Name: "settings", FromFieldPath: "data.mask", ToFieldPath: "spec.forProvider.mask",
	})
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "settings"}, Data: map[string]string{"mask": "24"}}
	for _, o := range []client.Object{settings, s} {
		if err := api.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	err := New(api, mgr.GetAPIReader(), mgr.GetRESTMapper(), WithSchema(schemaOfSubnets(t))).ResolveReferences(ctx, s)
	var failed *references.Error
	if !errors.As(err, &failed) || failed.Reason != commonv1alpha1.ReasonTargetRejected || !strings.Contains(err.Error(), ".spec.forProvider.mask: expected numeric") {
		t.Errorf("want %s that names the field, got %v", commonv1alpha1.ReasonTargetRejected, err)
	}
}

// TestFightWithAnotherApplier: a field that a tool applies from Git, be it empty, is left to that tool.
func TestFightWithAnotherApplier(t *testing.T) {
	ctx := context.Background()
	ns := namespace(t)
	s := subnet(ns, commonv1alpha1.GenericReference{
		Resource: "configmaps", Name: "settings", FromFieldPath: "data.region", ToFieldPath: "spec.forProvider.region",
	})
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "settings"}, Data: map[string]string{"region": "eu-west-1"}}
	for _, o := range []client.Object{settings, s} {
		if err := api.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	git := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"forProvider": map[string]any{"region": ""}}}}
	git.SetGroupVersionKind(managedexample.SubnetKind)
	git.SetNamespace(ns)
	git.SetName(s.Name)
	if err := api.Apply(ctx, client.ApplyConfigurationFromUnstructured(git), client.FieldOwner("argocd-controller")); err != nil {
		t.Fatal(err)
	}
	err := New(api, mgr.GetAPIReader(), mgr.GetRESTMapper(), WithSchema(schemaOfSubnets(t))).ResolveReferences(ctx, get(t, ns))
	if err == nil || !strings.Contains(err.Error(), `applied by "argocd-controller"`) || get(t, ns).Spec.ForProvider.Region != "" {
		t.Errorf("want an error with the manager's name, got %v", err)
	}
}

// TestDependency: nothing is created before another object is as it must be. What exists is not held back later.
func TestDependency(t *testing.T) {
	ctx := context.Background()
	ns := namespace(t)
	s := subnet(ns, commonv1alpha1.GenericReference{Resource: "configmaps", Name: "network", When: "self.data.phase == 'Ready'"})
	network := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "network"}, Data: map[string]string{"phase": "Creating"}}
	for _, o := range []client.Object{network, s} {
		if err := api.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	r := New(api, mgr.GetAPIReader(), mgr.GetRESTMapper(), WithSchema(schemaOfSubnets(t)))
	var failed *references.Error
	if err := r.ResolveReferences(ctx, s); !errors.As(err, &failed) || failed.Reason != commonv1alpha1.ReasonNotReady {
		t.Errorf("want %s, got %v", commonv1alpha1.ReasonNotReady, err)
	}
	created := s.DeepCopy()
	meta.SetExternalCreateSucceeded(created, time.Now())
	if err := r.ResolveReferences(ctx, created); err != nil {
		t.Errorf("want what exists not to be held back, got %v", err)
	}
	network.Data["phase"] = "Ready"
	if err := api.Update(ctx, network); err != nil {
		t.Fatal(err)
	}
	if err := r.ResolveReferences(ctx, s); err != nil {
		t.Errorf("want the dependency to be there, got %v", err)
	}
}

// TestSelector: an object is found by its labels.
func TestSelector(t *testing.T) {
	ctx := context.Background()
	ns := namespace(t)
	role := map[string]string{"role": "settings"}
	s := subnet(ns, commonv1alpha1.GenericReference{
		Resource: "configmaps", Selector: &commonv1alpha1.ReferenceSelector{MatchLabels: role}, FromFieldPath: "data.region", ToFieldPath: "spec.forProvider.region",
	})
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "a", Labels: role}, Data: map[string]string{"region": "eu-west-1"}}
	for _, o := range []client.Object{settings, s, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "b"}}} {
		if err := api.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	err := New(api, mgr.GetAPIReader(), mgr.GetRESTMapper(), WithSchema(schemaOfSubnets(t))).ResolveReferences(ctx, s)
	if err != nil || get(t, ns).Spec.ForProvider.Region != "eu-west-1" {
		t.Errorf("want the region of the ConfigMap with the label, got %v: %+v", err, get(t, ns).Spec.ForProvider)
	}
}

// TestReferencesThatCannotBeRead: references that cannot be read end the reconcile. Otherwise an external resource
// would be created without the values. A type without maxItems can have more references than are resolved.
func TestReferencesThatCannotBeRead(t *testing.T) {
	ref := commonv1alpha1.GenericReference{Resource: "configmaps", Name: "settings", FromFieldPath: "data.region", ToFieldPath: "spec.forProvider.region"}
	s := subnet("default", slices.Repeat([]commonv1alpha1.GenericReference{ref}, 129)...)
	err := New(api, mgr.GetAPIReader(), mgr.GetRESTMapper(), WithSchema(schemaOfSubnets(t))).ResolveReferences(context.Background(), s)
	if !errors.Is(err, references.ErrNotOurs) {
		t.Errorf("want an error that says so, got %v", err)
	}
}

// TestStrippedManagedFields: with a cache that strips managedFields, the fields that were filled in before would be
// removed.
func TestStrippedManagedFields(t *testing.T) {
	ctx := context.Background()
	ns := namespace(t)
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "settings"}, Data: map[string]string{"region": "eu-west-1"}}
	s := subnet(ns, commonv1alpha1.GenericReference{
		Resource: "configmaps", Name: "settings", FromFieldPath: "data.region", ToFieldPath: "spec.forProvider.region",
	})
	for _, o := range []client.Object{settings, s} {
		if err := api.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	s.ManagedFields = nil
	writes := &counting{Client: api}
	err := New(writes, mgr.GetAPIReader(), mgr.GetRESTMapper()).ResolveReferences(ctx, s)
	if err == nil || !strings.Contains(err.Error(), "managedFields") || writes.applied > 0 {
		t.Errorf("want an error and no write, got %v and %d writes", err, writes.applied)
	}
}

// TestSchema lets an API server validate references by the schema that authors paste.
func TestSchema(t *testing.T) {
	ns := namespace(t)
	source := commonv1alpha1.ReferenceSource{Resource: "configmaps", Name: "a", FieldPath: "data.a"}
	cases := map[string]struct {
		reason string
		ref    commonv1alpha1.GenericReference
		want   string
	}{
		"Valid":         {reason: "That of the seed.", ref: commonv1alpha1.GenericReference{Resource: "a", Name: "b", FromFieldPath: "c", ToFieldPath: "spec.a"}},
		"Variables":     {reason: "That of the seed's alternatives.", ref: commonv1alpha1.GenericReference{Variables: []commonv1alpha1.ReferenceVariable{{Name: "a", FromRef: source}}, Expression: "variables.a", ToFieldPath: "spec.a"}},
		"Policy":        {reason: "With a policy.", ref: commonv1alpha1.GenericReference{Resource: "a", Name: "b", FromFieldPath: "c", ToFieldPath: "spec.a", Policy: &commonv1alpha1.ReferencePolicy{Resolve: "Always", Resolution: "Optional"}}},
		"SimilarField":  {reason: "A field whose name begins alike.", ref: commonv1alpha1.GenericReference{Resource: "a", Name: "b", FromFieldPath: "c", ToFieldPath: "spec.referencesOfOthers"}},
		"UnknownPolicy": {reason: "There are two.", ref: commonv1alpha1.GenericReference{Resource: "a", Name: "b", FromFieldPath: "c", ToFieldPath: "spec.a", Policy: &commonv1alpha1.ReferencePolicy{Resolve: "Sometimes"}}, want: "Unsupported value"},
		"Neither":       {reason: "A value comes from somewhere.", ref: commonv1alpha1.GenericReference{ToFieldPath: "spec.a"}, want: "exactly one of the fields in [resource variables] must be set"},
		"Both":          {reason: "It comes from one or the other.", ref: commonv1alpha1.GenericReference{Resource: "a", Name: "b", FromFieldPath: "c", Variables: []commonv1alpha1.ReferenceVariable{{Name: "a", FromRef: source}}, Expression: "1", ToFieldPath: "spec.a"}, want: "exactly one of the fields in [resource variables] must be set"},
		"NoExpression":  {reason: "Variables are for an expression.", ref: commonv1alpha1.GenericReference{Variables: []commonv1alpha1.ReferenceVariable{{Name: "a", FromRef: source}}, ToFieldPath: "spec.a"}, want: "variables and expression are used together"},
		"NoName":        {reason: "An object has a name.", ref: commonv1alpha1.GenericReference{Resource: "a", FromFieldPath: "c", ToFieldPath: "spec.a"}, want: "exactly one of the fields in [name nameFieldPath selector variables] must be set"},
		"Dependency":    {reason: "Nothing is filled.", ref: commonv1alpha1.GenericReference{Resource: "a", Name: "b", FromFieldPath: "c", When: "self"}},
		"Existence":     {reason: "It is enough that the object is there.", ref: commonv1alpha1.GenericReference{Resource: "a", Name: "b"}},
		"OwnName":       {reason: "The object says which one.", ref: commonv1alpha1.GenericReference{Resource: "a", NameFieldPath: "spec.b"}},
		"TwoNames":      {reason: "It has one.", ref: commonv1alpha1.GenericReference{Resource: "a", Name: "b", NameFieldPath: "spec.b"}, want: "exactly one of the fields in [name nameFieldPath selector variables] must be set"},
		"Selector":      {reason: "Its labels say which one.", ref: commonv1alpha1.GenericReference{Resource: "a", Selector: &commonv1alpha1.ReferenceSelector{MatchLabels: map[string]string{"a": "b"}}}},
		"NoLabels":      {reason: "Everything would be meant.", ref: commonv1alpha1.GenericReference{Resource: "a", Selector: &commonv1alpha1.ReferenceSelector{}}, want: "matchLabels"},
		"NameToo":       {reason: "One of them is meant.", ref: commonv1alpha1.GenericReference{Resource: "a", Name: "b", Selector: &commonv1alpha1.ReferenceSelector{MatchLabels: map[string]string{"a": "b"}}}, want: "exactly one of the fields in [name nameFieldPath selector variables] must be set"},
		"NoSource":      {reason: "The value comes from a field.", ref: commonv1alpha1.GenericReference{Resource: "a", Name: "b", ToFieldPath: "spec.a"}, want: "toFieldPath needs a value"},
		"NoTarget":      {reason: "A computed value goes into a field.", ref: commonv1alpha1.GenericReference{Variables: []commonv1alpha1.ReferenceVariable{{Name: "a", FromRef: source}}, Expression: "variables.a"}, want: "variables need toFieldPath"},
		"WhenVariables": {reason: "An expression can examine its variables.", ref: commonv1alpha1.GenericReference{Variables: []commonv1alpha1.ReferenceVariable{{Name: "a", FromRef: source}}, Expression: "1", When: "true", ToFieldPath: "spec.a"}, want: "at most one of the fields in [when variables] may be set"},
		"Metadata":      {reason: "Only the spec is filled.", ref: commonv1alpha1.GenericReference{Resource: "a", Name: "b", FromFieldPath: "c", ToFieldPath: "metadata.name"}, want: "toFieldPath is a field in spec"},
		"References":    {reason: "Not the references themselves.", ref: commonv1alpha1.GenericReference{Resource: "a", Name: "b", FromFieldPath: "c", ToFieldPath: "spec.references[0].name"}, want: "toFieldPath is a field in spec"},
		"InBrackets":    {reason: "However they are written.", ref: commonv1alpha1.GenericReference{Resource: "a", Name: "b", FromFieldPath: "c", ToFieldPath: "spec[references][0].name"}, want: "toFieldPath is a field in spec"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := client.NewDryRunClient(api).Create(context.Background(), subnet(ns, tc.ref))
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// TestSchemaSnippet checks that the schema that authors paste is that of the Go type, and that it is recognised.
func TestSchemaSnippet(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "references", "schema.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var snippet map[string]apiextensionsv1.JSONSchemaProps
	if err := yaml.UnmarshalStrict(data, &snippet); err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := api.Get(context.Background(), types.NamespacedName{Name: "subnets.network.example.org"}, crd); err != nil {
		t.Fatal(err)
	}
	served := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["references"]
	want, _ := yaml.Marshal(served)
	got, _ := yaml.Marshal(snippet["references"])
	if string(want) != string(got) {
		t.Errorf("the snippet differs from what the API server has of the Go type: run make generate")
	}
	pasted := references.NewSchema(&apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Properties: snippet}}})
	if !pasted.DeclaresReferences() {
		t.Error("the snippet is not recognised as spec.references")
	}
}
