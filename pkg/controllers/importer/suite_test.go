// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/fakecloud"
	"github.com/masthead-dev/masthead/internal/test/providercrds"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/controllers/importer"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
	"github.com/masthead-dev/masthead/pkg/takeover"
)

const (
	// reader and admin are ClusterRoles of the credentials of imported clusters: one lists Nodes and writes nothing.
	reader = "import-reader"
	admin  = "cluster-admin"

	// tokenLifetime is how many seconds an issued token works. The importer requests the next one when a third of that
	// time is left.
	tokenLifetime = 15
)

// world is a hub, which is also the API server of the imported clusters, with the importer and with the providers of a
// cloud.
type world struct {
	config *rest.Config
	hub    client.Client
	cloud  *fakecloud.Cloud
	tokens *fakecloud.TokenEndpoint
	// stopCloud and stopImporter stop one of the parts that run in it, and return what went wrong.
	stopCloud, stopImporter func() error
}

// All worlds share the recorders.
var (
	shared sharedWorld
	scheme = runtime.NewScheme()
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

// modern is the world of most tests: the managed resources of AWS are namespaced, those of Azure and Google are
// cluster-scoped, as in the providers that exist as Go modules.
func modern(tb testing.TB) *world {
	tb.Helper()
	shared.once.Do(func() { shared.world, shared.stop, shared.err = startWorld(context.Background(), modernKinds()) })
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
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, fleetv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fail(err)
		}
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

// modernKinds are all but the cluster-scoped managed resources of AWS.
func modernKinds() []schema.GroupKind {
	return slices.Concat(providercrds.ClusterAPI(), providercrds.Machines(), providercrds.Imports())
}

// legacyKinds are the cluster-scoped managed resources of AWS, and the kinds that reflect one of its clusters.
func legacyKinds() []schema.GroupKind {
	return slices.DeleteFunc(providercrds.All(), func(gk schema.GroupKind) bool {
		return strings.Contains(gk.Group, ".m.upbound.io") || strings.Contains(gk.Group, "azure") || strings.Contains(gk.Group, "gcp") ||
			strings.HasPrefix(gk.Kind, "Azure") || strings.HasPrefix(gk.Kind, "GCP")
	})
}

// startWorld starts a hub that serves some kinds, and all that runs in it. stop returns what went wrong in it.
func startWorld(ctx context.Context, kinds []schema.GroupKind) (w *world, stop func() error, err error) {
	crds, err := providercrds.Load(ctx, kinds...)
	if err != nil {
		return nil, nil, err
	}
	env, err := testenv.New(testenv.CRDs())
	if err != nil {
		return nil, nil, err
	}
	env.CRDInstallOptions.CRDs = crds
	defer func() {
		if err != nil {
			_ = env.Stop()
		}
	}()
	w = &world{cloud: fakecloud.New(), tokens: fakecloud.NewTokenEndpoint(tokenLifetime)}
	if w.config, err = env.Start(); err != nil {
		return nil, nil, fmt.Errorf("cannot start the hub: %w", err)
	}
	w.config.QPS = -1
	if w.hub, err = client.New(w.config, client.Options{Scheme: scheme}); err != nil {
		return nil, nil, fmt.Errorf("cannot create a client: %w", err)
	}
	if err := w.prepare(ctx, kinds); err != nil {
		return nil, nil, err
	}
	cloud := w.cloud
	w.stopCloud = inBackground(ctx, func(ctx context.Context) error { return cloud.Run(ctx, w.config) })
	w.stopImporter = inBackground(ctx, w.runImporter)
	return w, func() error {
		err := errors.Join(w.stopCloud(), w.stopImporter())
		w.tokens.Close()
		return errors.Join(err, env.Stop())
	}, nil
}

// inBackground runs something until stop is called, which returns what went wrong.
func inBackground(ctx context.Context, run func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	return sync.OnceValue(func() error {
		cancel()
		return unlessCanceled(<-done)
	})
}

// unlessCanceled is nil for the error of something that was stopped before it had started: a short test can be over by
// then.
func unlessCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// prepare installs the admission policies and the provider configurations.
func (w *world) prepare(ctx context.Context, kinds []schema.GroupKind) error {
	policies, err := takeover.Policies()
	if err != nil {
		return fmt.Errorf("cannot read the policies: %w", err)
	}
	for _, p := range policies {
		if err := errors.Join(w.hub.Create(ctx, p.Policy), w.hub.Create(ctx, p.Binding)); err != nil {
			return fmt.Errorf("cannot install a policy: %w", err)
		}
	}
	for _, webhook := range []*admissionv1.ValidatingAdmissionPolicy{azureWebhook(), googleWebhook()} {
		if err := errors.Join(w.hub.Create(ctx, webhook), w.hub.Create(ctx, binding(webhook))); err != nil {
			return fmt.Errorf("cannot install what stands for a webhook: %w", err)
		}
	}
	for _, gk := range kinds {
		if config := providerConfig(gk); config != nil {
			if err := w.hub.Create(ctx, config); err != nil {
				return fmt.Errorf("cannot create a provider configuration: %w", err)
			}
		}
	}
	reader := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: reader}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list"}},
	}}
	if err := w.hub.Create(ctx, reader); err != nil {
		return fmt.Errorf("cannot create a ClusterRole: %w", err)
	}
	if err := w.grant(ctx); err != nil {
		return err
	}
	// A policy is enforced a moment after it was created.
	return testenv.Poll(ctx, 2*time.Minute, func(ctx context.Context) (bool, error) {
		return takeover.Verify(ctx, w.hub, metav1.NamespaceDefault) == nil, nil
	})
}

// azureWebhook refuses what the admission webhooks of Cluster API Provider Azure refuse of what an import writes
// (internal/webhooks/azuremanagedcontrolplane_validation.go and azuremanagedmachinepool_validation.go of v1.23.0). A
// policy cannot read the Cluster: that there is none yet, or that it is not being deleted, is assumed.
func azureWebhook() *admissionv1.ValidatingAdmissionPolicy {
	return webhook("azure-webhook", []string{"azuremanagedcontrolplanes", "azuremanagedmachinepools"}, []admissionv1.Validation{
		{
			Message:    "the Cluster is not found",
			Expression: "request.operation != 'CREATE' || object.kind != 'AzureManagedControlPlane' || !variables.ofCluster",
		},
		{
			Message:    "DisableLocalAccounts should be set only for AAD enabled clusters",
			Expression: "!has(variables.is.spec.disableLocalAccounts) || has(variables.is.spec.aadProfile)",
		},
		{
			Message:    "spec.aadProfile: Invalid value: null: field cannot be nil, cannot disable AADProfile",
			Expression: "request.operation != 'UPDATE' || !has(oldObject.spec.aadProfile) || has(object.spec.aadProfile)",
		},
		{
			Message: "spec.disableLocalAccounts: Invalid value: null: field is immutable",
			Expression: "request.operation != 'UPDATE' || !has(oldObject.spec.disableLocalAccounts) " +
				"|| object.spec.?disableLocalAccounts == oldObject.spec.?disableLocalAccounts",
		},
		{
			Message:    "Node pool label key must not start with kubernetes.azure.com",
			Expression: "variables.is.spec.?nodeLabels.orValue({}).all(key, !key.startsWith('kubernetes.azure.com'))",
		},
		{
			Message: "AKS Cluster must have at least one system pool",
			Expression: "request.operation != 'DELETE' || variables.is.spec.?mode.orValue('') != 'System' || !variables.ofCluster " +
				"|| 'clusterctl.cluster.x-k8s.io/delete-for-move' in variables.is.metadata.?annotations.orValue({})",
		},
	})
}

// googleWebhook refuses what the admission webhooks of Cluster API Provider GCP refuse of what an import writes
// (exp/webhooks/gcpmanagedcontrolplane_webhook.go and gcpmanagedmachinepool_webhook.go of v1.13.1).
func googleWebhook() *admissionv1.ValidatingAdmissionPolicy {
	const autopilot = "!variables.is.spec.?enableAutopilot.orValue(false) || "
	return webhook("google-webhook", []string{"gcpmanagedcontrolplanes", "gcpmanagedmachinepools"}, []admissionv1.Validation{
		{
			Message:    "Release channel is required for an autopilot enabled cluster",
			Expression: "request.operation != 'CREATE' || " + autopilot + "has(object.spec.releaseChannel)",
		},
		{Message: "spec.LoggingService can't be set when autopilot is enabled", Expression: autopilot + "!has(variables.is.spec.loggingService)"},
		{Message: "spec.MonitoringService can't be set when autopilot is enabled", Expression: autopilot + "!has(variables.is.spec.monitoringService)"},
		{
			Message:    "spec.EnableAutopilot: field is immutable",
			Expression: "request.operation != 'UPDATE' || object.spec.?enableAutopilot.orValue(false) == oldObject.spec.?enableAutopilot.orValue(false)",
		},
		{
			Message: "cannot be specified when autoscaling is disabled",
			Expression: "variables.is.spec.?scaling.?enableAutoscaling.orValue(true) " +
				"|| !['minCount', 'maxCount', 'locationPolicy'].exists(field, field in variables.is.spec.scaling)",
		},
	})
}

// webhook is a policy that stands for the webhooks of a provider, for some of its kinds.
func webhook(name string, resources []string, validations []admissionv1.Validation) *admissionv1.ValidatingAdmissionPolicy {
	rule := admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete},
		Rule:       admissionv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: resources},
	}}
	return &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{rule}},
		Variables: []admissionv1.Variable{
			{Name: "is", Expression: "request.operation == 'DELETE' ? oldObject : object"},
			{Name: "ofCluster", Expression: "'cluster.x-k8s.io/cluster-name' in variables.is.metadata.?labels.orValue({})"},
		},
		Validations: validations,
	}}
}

// binding puts a policy in force.
func binding(policy *admissionv1.ValidatingAdmissionPolicy) *admissionv1.ValidatingAdmissionPolicyBinding {
	return &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy.Name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
}

// providerConfig is the configuration of a kind: "customer" is for the namespace default, "platform" is not.
func providerConfig(gk schema.GroupKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"credentials": map[string]any{"source": "None"}}}}
	u.SetGroupVersionKind(gk.WithVersion("v1beta1"))
	u.SetName("customer")
	switch {
	case gk.Kind == "ClusterProviderConfig":
		u.SetName("platform")
	case gk.Kind != "ProviderConfig":
		return nil
	case strings.HasSuffix(gk.Group, ".m.upbound.io"):
		u.SetNamespace(metav1.NamespaceDefault)
	default:
		u.SetAnnotations(map[string]string{fleetv1alpha1.ImportAllowedNamespacesAnnotation: metav1.NamespaceDefault})
	}
	switch gk.Group {
	case "azure.upbound.io":
		_ = unstructured.SetNestedField(u.Object, fakecloud.DefaultSubscriptionID, "spec", "subscriptionID")
	case "gcp.upbound.io":
		_ = unstructured.SetNestedField(u.Object, fakecloud.DefaultProjectID, "spec", "projectID")
	}
	return u
}

func (w *world) runImporter(ctx context.Context) error {
	mgr, err := ctrl.NewManager(rights.asServiceAccount(w.config), ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
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
	unchecked := true
	err = importer.SetupWithManager(mgr, importer.Options{
		Credentials: credentials.Options{AllowLoopback: true}, SkipNameValidation: &unchecked,
		AllowedTokenEndpoints: []string{w.tokens.URL() + "/"}, TokenAuthorities: w.tokens.Authority(),
	})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
