// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
	"github.com/masthead-dev/masthead/pkg/reflection"
	"github.com/masthead-dev/masthead/pkg/takeover"
	"github.com/masthead-dev/masthead/test/fakecloud"
	"github.com/masthead-dev/masthead/test/providercrds"
	"github.com/masthead-dev/masthead/test/testenv"
)

const (
	region = "eu-central-1"
	// reader is a ClusterRole that lists Nodes and writes nothing.
	reader = "import-reader"
)

// The hub of this package, which is also the API server of the imported clusters, and the cloud whose providers run in it.
var (
	config *rest.Config
	hub    client.Client
	scheme = runtime.NewScheme()
	cloud  = fakecloud.New()
	writes = &recorder{seen: map[string]bool{}, lost: map[string]bool{}}
)

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
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	crds, err := providercrds.Load(ctx, kinds()...)
	if err != nil {
		return fail(err)
	}
	env, err := testenv.New(testenv.CRDs())
	if err != nil {
		return fail(err)
	}
	env.CRDInstallOptions.CRDs = crds
	defer func() { _ = env.Stop() }()
	if config, err = env.Start(); err != nil {
		return fail(err)
	}
	config.QPS = -1
	if hub, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return fail(err)
	}
	if err := prepare(ctx); err != nil {
		return fail(err)
	}
	done := make(chan error, 2)
	go func() { done <- cloud.Run(ctx, config) }()
	go func() { done <- runImporter(ctx) }()
	code := m.Run()
	cancel()
	for range cap(done) {
		if err := <-done; err != nil {
			code = fail(err)
		}
	}
	return code
}

// kinds are those of EKS: the namespaced managed resources, and Cluster API's.
func kinds() []schema.GroupKind {
	all := append(providercrds.ModernManagedResources(), providercrds.ClusterAPI()...)
	for _, gk := range append(append(providercrds.Reflected(), providercrds.Identities()...), providercrds.ProviderConfigs()...) {
		if strings.HasPrefix(gk.Kind, "AWS") || strings.HasPrefix(gk.Group, "aws.") {
			all = append(all, gk)
		}
	}
	return all
}

// prepare installs the admission policies and the provider configurations.
func prepare(ctx context.Context) error {
	policies, err := takeover.Policies()
	if err != nil {
		return fmt.Errorf("cannot read the policies: %w", err)
	}
	for _, p := range policies {
		if err := errors.Join(hub.Create(ctx, p.Policy), hub.Create(ctx, p.Binding)); err != nil {
			return fmt.Errorf("cannot install a policy: %w", err)
		}
	}
	configs := []*unstructured.Unstructured{providerConfig("ProviderConfig", "customer"), providerConfig("ClusterProviderConfig", "platform")}
	for _, c := range configs {
		if err := hub.Create(ctx, c); err != nil {
			return fmt.Errorf("cannot create a provider configuration: %w", err)
		}
	}
	reader := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: reader}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list"}},
	}}
	if err := hub.Create(ctx, reader); err != nil {
		return fmt.Errorf("cannot create a ClusterRole: %w", err)
	}
	// A policy is enforced a moment after it was created.
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		return takeover.Verify(ctx, hub, metav1.NamespaceDefault) == nil, nil
	})
}

func providerConfig(kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"credentials": map[string]any{"source": "None"}}}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "aws.m.upbound.io", Version: "v1beta1", Kind: kind})
	u.SetName(name)
	if kind == "ProviderConfig" {
		u.SetNamespace(metav1.NamespaceDefault)
	}
	return u
}

func runImporter(ctx context.Context) error {
	mgr, err := ctrl.NewManager(config, ctrl.Options{
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
		return fmt.Errorf("cannot make the manager: %w", err)
	}
	unchecked := true
	err = importer.SetupWithManager(mgr, importer.Options{Credentials: credentials.Options{AllowLoopback: true}, SkipNameValidation: &unchecked})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// recorder notes every write of the importer. While it loses replies, the first write of each kind on each object is carried out and then
// answered with an error, as if the manager had been killed between the write and the next.
type recorder struct {
	mu     sync.Mutex
	seen   map[string]bool
	losing bool
	lost   map[string]bool
}

func (r *recorder) after(verb string, obj client.Object, err error) error {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		gvk.Kind = fmt.Sprintf("%T", obj)
		gvk.Kind = gvk.Kind[strings.LastIndex(gvk.Kind, ".")+1:]
	}
	if strings.HasPrefix(gvk.Kind, "SelfSubject") {
		return err
	}
	scope := "in the namespace of the import"
	if obj.GetNamespace() == "" {
		scope = "cluster-scoped"
	}
	if ns := obj.GetNamespace(); ns != "" && ns != metav1.NamespaceDefault {
		scope = "in another namespace"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[fmt.Sprintf("%s %s %s", verb, gvk.GroupKind(), scope)] = true
	what := verb + gvk.Kind + obj.GetName()
	if err == nil && r.losing && !r.lost[what] {
		r.lost[what] = true
		return errors.New("the reply was lost")
	}
	return err
}

func (r *recorder) lose(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.losing, r.lost = on, map[string]bool{}
}

// applied is an object that is applied.
func applied(o runtime.ApplyConfiguration) client.Object {
	if u, ok := o.(interface {
		GetName() string
		GetNamespace() string
	}); ok {
		if object, ok := u.(client.Object); ok {
			return object
		}
		out := &unstructured.Unstructured{}
		out.SetName(u.GetName())
		out.SetNamespace(u.GetNamespace())
		if k, ok := u.(interface {
			GroupVersionKind() schema.GroupVersionKind
		}); ok {
			out.SetGroupVersionKind(k.GroupVersionKind())
		}
		return out
	}
	return &unstructured.Unstructured{}
}

func (r *recorder) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
			options := &client.CreateOptions{}
			options.ApplyOptions(o)
			err := c.Create(ctx, obj, o...)
			if len(options.DryRun) > 0 {
				return err
			}
			return r.after("create", obj, err)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.DeleteOption) error {
			return r.after("delete", obj, c.Delete(ctx, obj, o...))
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.UpdateOption) error {
			return r.after("update", obj, c.Update(ctx, obj, o...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, o ...client.PatchOption) error {
			return r.after("patch", obj, c.Patch(ctx, obj, p, o...))
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, o ...client.ApplyOption) error {
			return r.after("apply", applied(obj), c.Apply(ctx, obj, o...))
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, obj runtime.ApplyConfiguration, o ...client.SubResourceApplyOption) error {
			return r.after("apply "+sub+" of", applied(obj), c.SubResource(sub).Apply(ctx, obj, o...))
		},
	}
}

// eventually waits until a check passes.
func eventually(t *testing.T, what string, check func() (bool, string)) {
	t.Helper()
	last := ""
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 4*time.Minute, true, func(context.Context) (bool, error) {
		var ok bool
		ok, last = check()
		return ok, nil
	}); err != nil {
		t.Fatalf("%s: %v: %s", what, err, last)
	}
}

func waitFor(t *testing.T, imp *fleetv1alpha1.ClusterImport, conditionType, reason string) {
	t.Helper()
	eventually(t, conditionType+" "+reason, func() (bool, string) {
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(imp), imp); err != nil {
			return false, err.Error()
		}
		c := meta.FindStatusCondition(imp.Status.Conditions, conditionType)
		return c != nil && c.Reason == reason && imp.Status.ObservedGeneration == imp.Generation, fmt.Sprint(imp.Status.Conditions)
	})
}

func eks(t *testing.T, name, clusterRole string, pools ...string) fakecloud.EKS {
	t.Helper()
	api, err := fakecloud.ServiceAccountAPI(t.Context(), config, "imported-"+name, clusterRole)
	if err != nil {
		t.Fatal(err)
	}
	cluster := fakecloud.EKS{Region: region, Name: name, API: api, Subnets: []fakecloud.Subnet{
		{ID: "subnet-0a1b2c3d", Zone: region + "a", CIDR: "10.20.0.0/20", Public: true}, {ID: "subnet-1a1b2c3d", Zone: region + "b", CIDR: "10.20.16.0/20"},
	}}
	for _, p := range pools {
		cluster.NodeGroups = append(cluster.NodeGroups, fakecloud.NodeGroup{Name: p})
	}
	cloud.AddEKS(cluster)
	return cluster
}

func importOf(name, cluster string, pools ...string) *fleetv1alpha1.ClusterImport {
	return &fleetv1alpha1.ClusterImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec: fleetv1alpha1.ClusterImportSpec{
			EKS:               &fleetv1alpha1.EKSImport{Region: region, ClusterName: cluster, NodeGroupNames: pools},
			ProviderConfigRef: fleetv1alpha1.ProviderConfigReference{Name: "customer"},
		},
	}
}

func create(t *testing.T, o client.Object) {
	t.Helper()
	if err := hub.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// unimport deletes an import, and sees that nothing of it is left.
func unimport(t *testing.T, imp *fleetv1alpha1.ClusterImport) {
	t.Helper()
	uid := string(imp.UID)
	if err := hub.Delete(t.Context(), imp); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the import is gone", func() (bool, string) {
		err := hub.Get(t.Context(), client.ObjectKeyFromObject(imp), imp)
		return apierrors.IsNotFound(err), fmt.Sprint(imp.Status.Conditions)
	})
	if left := made(t, uid); len(left) > 0 {
		t.Errorf("un-import leaves %v", left)
	}
}

// made is everything that bears the label of an import.
func made(t *testing.T, uid string) []string {
	t.Helper()
	var all []string
	gvks := append(reflection.ReflectedKinds(reflection.EKS), corev1.SchemeGroupVersion.WithKind("Secret"))
	for _, k := range reflection.Kinds(reflection.EKS) {
		gvks = append(gvks, k.Namespaced().WithVersion("v1beta1"))
	}
	for _, gvk := range gvks {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		if err := hub.List(t.Context(), list, client.MatchingLabels{fleetv1alpha1.ImportUIDLabel: uid}); err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			all = append(all, gvk.Kind+"/"+o.GetName())
		}
	}
	return all
}
