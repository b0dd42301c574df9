// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/importertest"
	"github.com/masthead-dev/masthead/internal/test/providercrds"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/token"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

var clusterProviderConfigKind = schema.GroupVersionKind{Group: "aws.m.upbound.io", Version: "v1beta1", Kind: "ClusterProviderConfig"}

// hubOfOneImport is a hub in memory with one ClusterImport of EKS.
type hubOfOneImport struct {
	t   *testing.T
	c   client.WithWatch
	r   *Reconciler
	key client.ObjectKey
	// lose means that each write is carried out and its reply is lost once, as when the manager is killed after it.
	lose bool
	lost map[string]bool
	// enforced reports whether the admission policies are.
	enforced bool
	// writes are the writes so far, each as its verb and its kind.
	writes []string
	// afterApply, if there is one, changes what was applied, as a defaulting webhook does.
	afterApply func()
	// hub is what differs from a hub that has everything.
	hub hubFaults
	// tags are those of the cluster in the cloud.
	tags map[string]any
}

func newHub(t *testing.T, imp *fleetv1alpha1.ClusterImport, others ...client.Object) *hubOfOneImport {
	t.Helper()
	h := &hubOfOneImport{t: t, key: client.ObjectKeyFromObject(imp), lost: map[string]bool{}, enforced: true}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, fleetv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	kinds := slices.Concat(providercrds.ModernManagedResources(), providercrds.ClusterAPI(), providercrds.Machines(), providercrds.Reflected(), providercrds.Identities())
	crds, err := providercrds.Load(t.Context(), kinds...)
	if err != nil {
		t.Fatal(err)
	}
	mapper := newMapper(crds)
	mapper.Add(schema.GroupVersionKind{Group: "aws.m.upbound.io", Version: "v1beta1", Kind: "ProviderConfig"}, meta.RESTScopeNamespace)
	mapper.Add(clusterProviderConfigKind, meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(fleetv1alpha1.GroupVersion.WithKind("ClusterImport"), meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, meta.RESTScopeRoot)
	mapper.Add(schema.GroupVersionKind{Group: "authorization.k8s.io", Version: "v1", Kind: "SelfSubjectAccessReview"}, meta.RESTScopeRoot)
	mapper.Add(resourceDefinitionKind, meta.RESTScopeRoot)
	objects := slices.Concat([]client.Object{imp, config("ProviderConfig", imp.Namespace, "customer"), config("ClusterProviderConfig", "", "platform")}, others)
	statuses := []client.Object{&fleetv1alpha1.ClusterImport{}}
	for _, crd := range crds {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{Object: content}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		objects = append(objects, u)
		scope := meta.RESTScope(meta.RESTScopeRoot)
		if crd.Spec.Scope == "Namespaced" {
			scope = meta.RESTScopeNamespace
		}
		gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
		for _, v := range crd.Spec.Versions {
			if v.Served {
				gvk.Version = v.Name
			}
		}
		mapper.AddSpecific(gvk, gvk.GroupVersion().WithResource(crd.Spec.Names.Plural), gvk.GroupVersion().WithResource(crd.Spec.Names.Singular), scope)
		status := &unstructured.Unstructured{}
		status.SetGroupVersionKind(gvk)
		statuses = append(statuses, status)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).WithStatusSubresource(statuses...)
	for _, gvk := range memberKinds() {
		member := &unstructured.Unstructured{}
		member.SetGroupVersionKind(gvk)
		builder.WithIndex(member, clusterNameField, byClusterName)
	}
	h.c = builder.Build()
	clock := clocktesting.NewFakeClock(time.Now())
	minted, err := token.New(nil, nil, clock)
	if err != nil {
		t.Fatal(err)
	}
	ofHub := &hubObjects{hub: interceptor.NewClient(h.c, h.funcs()), live: interceptor.NewClient(h.c, interceptor.Funcs{Get: h.hub.get}), owned: h.c}
	h.r = &Reconciler{
		hubObjects: ofHub, mapper: faultyMapper{mapper, &h.hub}, recorder: events.NewFakeRecorder(1000), clock: clock,
		watch: noWatch, watched: kindsOfEKS, members: h.c, watchMembers: noWatch,
		verify: func(context.Context, string) error {
			if h.enforced {
				return nil
			}
			return errors.New("a policy is missing")
		},
		kinds: newKinds(clock), states: newStates(),
		kubeconfigs: &kubeconfigs{
			hubObjects: ofHub, clock: clock, tokens: minted, accounts: minted.OfAccounts(), clusters: workload.NewClusters(clock, nil),
			places: newPlaces(DefaultMaxConcurrentReconciles, func(types.NamespacedName) {}),
		},
	}
	return h
}

func noWatch(context.Context, schema.GroupVersionKind) error { return nil }

// kindsOfEKS are the kinds of all that an import of EKS creates, except the Secret.
func kindsOfEKS() []schema.GroupVersionKind {
	gvks := importertest.ReflectedKinds(reflection.EKS)
	for _, k := range reflection.Kinds(reflection.EKS) {
		gvks = append(gvks, k.Namespaced().WithVersion("v1beta1"))
	}
	return gvks
}

// newMapper prefers the versions that the CRDs serve.
func newMapper(crds []*apiextensionsv1.CustomResourceDefinition) *meta.DefaultRESTMapper {
	versions := []schema.GroupVersion{
		{Group: "aws.m.upbound.io", Version: "v1beta1"}, corev1.SchemeGroupVersion, fleetv1alpha1.GroupVersion,
		apiextensionsv1.SchemeGroupVersion, authorizationv1.SchemeGroupVersion,
	}
	for _, crd := range crds {
		for _, v := range crd.Spec.Versions {
			if v.Served {
				versions = append(versions, schema.GroupVersion{Group: crd.Spec.Group, Version: v.Name})
			}
		}
	}
	return meta.NewDefaultRESTMapper(versions)
}

func config(kind, namespace, name string) client.Object {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "aws.m.upbound.io", Version: "v1beta1", Kind: kind})
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// after is called after each write.
func (h *hubOfOneImport) after(verb string, o client.Object, err error) error {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	h.writes = append(h.writes, verb+" "+kind)
	what := verb + "/" + kind + "/" + o.GetName()
	if err == nil && h.lose && !h.lost[what] {
		h.lost[what] = true
		return errors.New("the reply was lost")
	}
	return err
}

func (h *hubOfOneImport) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if review, ok := o.(*authorizationv1.SelfSubjectAccessReview); ok {
				review.Status.Allowed = !h.hub.denies(review.Spec.ResourceAttributes)
				return nil
			}
			if err := h.hub.admit(o); err != nil {
				return err
			}
			options := &client.CreateOptions{}
			options.ApplyOptions(opts)
			if len(options.DryRun) > 0 {
				return c.Create(ctx, o, opts...)
			}
			o.SetUID(schemaUID(o))
			return h.after("create", o, c.Create(ctx, o, opts...))
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return h.after("delete", o, c.Delete(ctx, o, opts...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return h.after("patch", o, c.Patch(ctx, o, p, opts...))
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return h.after("update", o, c.Update(ctx, o, opts...))
		},
		Apply: func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(config)
			if err != nil {
				return err
			}
			want := &unstructured.Unstructured{Object: content}
			there := want.DeepCopy()
			if err := c.Get(ctx, client.ObjectKeyFromObject(want), there); err != nil {
				return err
			}
			if err := h.hub.review(want, there); err != nil {
				return err
			}
			if err := c.Apply(ctx, config, opts...); err != nil || h.afterApply == nil {
				return h.after("apply", want, err)
			}
			h.afterApply()
			now, _ := config.(runtime.Unstructured)
			err = c.Get(ctx, client.ObjectKeyFromObject(want), there)
			now.SetUnstructuredContent(there.Object)
			return h.after("apply", want, err)
		},
	}
}

// settle runs the importer until it has no more to write, and acts as the Crossplane provider in between.
func (h *hubOfOneImport) settle() {
	h.t.Helper()
	var last error
	for range 60 {
		before := len(h.writes)
		_, last = h.r.Reconcile(h.t.Context(), reconcile.Request{NamespacedName: h.key})
		observed := h.observe()
		if last == nil && !observed && len(h.writes) == before {
			return
		}
	}
	h.t.Fatalf("the importer does not come to an end: %v; %v", last, h.writes[max(0, len(h.writes)-10):])
}

// observe fills the status of what is not paused, as a provider does, and says whether there was anything.
func (h *hubOfOneImport) observe() bool {
	h.t.Helper()
	did := false
	for kind, atProvider := range map[reflection.Kind]map[string]any{
		reflection.EKSCluster: {
			"arn": "arn:aws:eks:eu-central-1:123456789012:cluster/prod", "id": "prod", "endpoint": "https://cluster.example.org", "version": "1.31",
			"status": "ACTIVE", "certificateAuthority": []any{map[string]any{"data": "LS0t"}},
			"vpcConfig": map[string]any{"vpcId": "vpc-0a1b2c3d", "subnetIds": []any{"subnet-0a1b2c3d"}},
		},
		reflection.EKSNodeGroup: {
			"scalingConfig": map[string]any{"desiredSize": int64(2), "minSize": int64(1), "maxSize": int64(3)}, "instanceTypes": []any{"m5.large"},
			"amiType": "AL2023_x86_64_STANDARD", "capacityType": "ON_DEMAND", "status": "ACTIVE", "subnetIds": []any{"subnet-0a1b2c3d"},
		},
		reflection.EKSClusterAuth: {}, reflection.EC2VPC: {"cidrBlock": "10.0.0.0/16"},
		reflection.EC2Subnet: {"availabilityZone": "eu-central-1a", "cidrBlock": "10.0.0.0/20", "mapPublicIpOnLaunch": true},
	} {
		for _, m := range h.list(kind.Namespaced().WithVersion("v1beta1")) {
			_, done, _ := unstructured.NestedSlice(m.Object, "status", "conditions")
			if done || m.GetAnnotations()[reflection.ManagedPausedAnnotation] == "true" {
				continue
			}
			did = true
			if kind == reflection.EKSCluster && h.tags != nil {
				atProvider["tags"] = h.tags
			}
			m.Object["status"] = map[string]any{"atProvider": atProvider, "conditions": []any{
				map[string]any{"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": "2026-01-01T00:00:00Z"},
				map[string]any{"type": "Synced", "status": "True", "reason": "ReconcileSuccess", "lastTransitionTime": "2026-01-01T00:00:00Z"},
			}}
			if err := h.c.Status().Update(h.t.Context(), &m); err != nil {
				h.t.Fatal(err)
			}
		}
	}
	return did
}

func (h *hubOfOneImport) list(gvk schema.GroupVersionKind) []unstructured.Unstructured {
	h.t.Helper()
	list := unstructuredList(gvk)
	if err := h.c.List(h.t.Context(), list); err != nil {
		h.t.Fatal(err)
	}
	return list.Items
}

// made is everything that bears the label of an import.
func (h *hubOfOneImport) made() []string { return h.madeBy("") }

// madeBy is everything that bears the label of the import of a UID; without one, of any.
func (h *hubOfOneImport) madeBy(uid string) []string {
	var all []string
	for _, gvk := range append(kindsOfEKS(), corev1.SchemeGroupVersion.WithKind("Secret")) {
		for _, o := range h.list(gvk) {
			if bears := o.GetLabels()[fleetv1alpha1.ImportUIDLabel]; bears != "" && (uid == "" || bears == uid) {
				all = append(all, gvk.Kind+"/"+o.GetName())
			}
		}
	}
	slices.Sort(all)
	return all
}

func (h *hubOfOneImport) get() *fleetv1alpha1.ClusterImport {
	h.t.Helper()
	imp := &fleetv1alpha1.ClusterImport{}
	if err := h.c.Get(h.t.Context(), h.key, imp); err != nil {
		h.t.Fatal(err)
	}
	return imp
}

func (h *hubOfOneImport) want(conditionType, reason string) {
	h.t.Helper()
	c := meta.FindStatusCondition(h.get().Status.Conditions, conditionType)
	if c == nil || c.Reason != reason {
		h.t.Fatalf("want %s with the reason %s, got %+v", conditionType, reason, h.get().Status.Conditions)
	}
}

func anImport() *fleetv1alpha1.ClusterImport {
	return &fleetv1alpha1.ClusterImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "customers", Name: "shop", UID: "import-uid", Generation: 1, CreationTimestamp: metav1.Now()},
		Spec: fleetv1alpha1.ClusterImportSpec{
			EKS:               &fleetv1alpha1.EKSImport{Region: "eu-central-1", ClusterName: "prod", NodeGroupNames: []string{"blue", "green"}},
			ProviderConfigRef: fleetv1alpha1.ProviderConfigReference{Kind: "ProviderConfig", Name: "customer"},
			Kubeconfig:        &fleetv1alpha1.ImportKubeconfig{Source: fleetv1alpha1.KubeconfigSourceNone},
			Enroll:            "gold",
		},
	}
}

// schemaUID is a UID as the server would give one.
func schemaUID(o client.Object) types.UID {
	return types.UID(fmt.Sprintf("uid-%s-%s", strings.ToLower(o.GetObjectKind().GroupVersionKind().Kind), o.GetName()))
}

// TestImportAndUnimport runs an import through its life in a hub in memory: with and without each reply being lost
// once, as when the manager is killed after each write. The same objects exist at the end, and none after un-import.
func TestImportAndUnimport(t *testing.T) {
	var without []string
	for _, lose := range []bool{false, true} {
		t.Run(fmt.Sprintf("LostReplies=%v", lose), func(t *testing.T) {
			h := newHub(t, anImport())
			h.lose = lose
			h.settle()
			for of, reason := range map[string]string{
				fleetv1alpha1.ConditionPreflight: fleetv1alpha1.ReasonPreflightPassed, fleetv1alpha1.ConditionAdmissionEnforced: fleetv1alpha1.ReasonCanaryDenied,
				fleetv1alpha1.ConditionObserved: fleetv1alpha1.ReasonObserved, fleetv1alpha1.ConditionReflected: fleetv1alpha1.ReasonReflected,
				fleetv1alpha1.ConditionKubeconfigReady: fleetv1alpha1.ReasonKubeconfigNotRequested, fleetv1alpha1.ConditionReady: fleetv1alpha1.ReasonImported,
			} {
				h.want(of, reason)
			}
			all := h.made()
			for _, want := range []string{
				"Cluster/shop", "AWSManagedCluster/shop", "AWSManagedControlPlane/shop", "AWSManagedMachinePool/shop-blue-03bf9cf4b366",
				"AWSManagedMachinePool/shop-green-a8d618b92fcf", "MachinePool/shop-blue-03bf9cf4b366", "MachinePool/shop-green-a8d618b92fcf",
			} {
				if !slices.Contains(all, want) {
					t.Errorf("%s is not there: %v", want, all)
				}
			}
			if !lose {
				without = all
			} else if !slices.Equal(all, without) {
				t.Errorf("with lost replies there is something else: want %v, got %v", without, all)
			}
			h.nothingCanAct()
			before := len(h.writes)
			if _, err := h.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: h.key}); err != nil || len(h.writes) != before {
				t.Errorf("an import at rest writes nothing: %v, %v", err, h.writes[before:])
			}
			if err := h.c.Delete(t.Context(), h.get()); err != nil {
				t.Fatal(err)
			}
			h.settle()
			if left := h.made(); len(left) > 0 {
				t.Errorf("un-import leaves %v", left)
			}
			err := h.c.Get(t.Context(), h.key, &fleetv1alpha1.ClusterImport{})
			if !apierrors.IsNotFound(err) {
				t.Errorf("the import is gone: got %v", err)
			}
		})
	}
}

// nothingCanAct checks that everything reflected is paused and without finalizers, and that managed resources only
// observe.
func (h *hubOfOneImport) nothingCanAct() {
	h.t.Helper()
	for _, gvk := range importertest.ReflectedKinds(reflection.EKS) {
		for _, o := range h.list(gvk) {
			_, paused := o.GetAnnotations()[clusterv1.PausedAnnotation]
			if !paused && gvk.Kind != "Cluster" && gvk.Kind != "AWSClusterStaticIdentity" || len(o.GetFinalizers()) > 0 {
				h.t.Errorf("%s %q is not paused, or has a finalizer", gvk.Kind, o.GetName())
			}
		}
	}
	for _, kind := range reflection.Kinds(reflection.EKS) {
		for _, o := range h.list(kind.Namespaced().WithVersion("v1beta1")) {
			if err := verifyManaged(&o); err != nil {
				h.t.Error(err)
			}
		}
	}
}

// TestNothingIsMadeWhileItMustNot covers each of the reasons for which an import stops before its first write.
func TestNothingIsMadeWhileItMustNot(t *testing.T) {
	foreign := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "customers", Name: "shop", UID: "foreign"}}
	older := anImport()
	older.Name, older.UID, older.CreationTimestamp = "older", "older-uid", metav1.NewTime(time.Now().Add(-time.Hour))
	cases := map[string]struct {
		reason          string
		change          func(*fleetv1alpha1.ClusterImport)
		others          []client.Object
		arrange         func(*hubOfOneImport)
		condition, want string
	}{
		"ConfigOfOthers": {
			reason: "A cluster-scoped configuration says which namespaces may use it.",
			change: func(i *fleetv1alpha1.ClusterImport) {
				i.Spec.ProviderConfigRef = fleetv1alpha1.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "platform"}
			},
			condition: fleetv1alpha1.ConditionPreflight, want: fleetv1alpha1.ReasonProviderConfigNotAllowed,
		},
		"NoConfig": {
			reason:    "It has to be there.",
			change:    func(i *fleetv1alpha1.ClusterImport) { i.Spec.ProviderConfigRef.Name = "none" },
			condition: fleetv1alpha1.ConditionPreflight, want: fleetv1alpha1.ReasonProviderConfigNotFound,
		},
		"InvalidSpec": {
			reason:    "What is no name of a cluster of EKS names none.",
			change:    func(i *fleetv1alpha1.ClusterImport) { i.Spec.EKS.ClusterName = "../prod" },
			condition: fleetv1alpha1.ConditionPreflight, want: fleetv1alpha1.ReasonInvalidSpec,
		},
		"NoPolicies": {
			reason: "The hub has to refuse the canary.", arrange: func(h *hubOfOneImport) { h.enforced = false },
			condition: fleetv1alpha1.ConditionAdmissionEnforced, want: fleetv1alpha1.ReasonCanaryFailed,
		},
		"NameTaken": {
			reason: "Another user's Cluster has the name.", others: []client.Object{foreign},
			condition: fleetv1alpha1.ConditionAlreadyManaged, want: fleetv1alpha1.ReasonNameTaken,
		},
		"Twice": {
			reason: "An older import has the cluster.", others: []client.Object{older},
			condition: fleetv1alpha1.ConditionAlreadyManaged, want: fleetv1alpha1.ReasonImportedTwice,
		},
		"PolicyNotInTheCRD": {
			reason:    "Crossplane 1.11 had managementPolicy. The list is pruned, and the resource would be managed.",
			arrange:   func(h *hubOfOneImport) { h.changeCRD(reflection.EKSNodeGroup, "spec", withoutPolicies) },
			condition: fleetv1alpha1.ConditionPreflight, want: fleetv1alpha1.ReasonKindsTooOld,
		},
		"PolicyObserveNotInTheCRD": {
			reason:    "An early list did not know Observe.",
			arrange:   func(h *hubOfOneImport) { h.changeCRD(reflection.EKSNodeGroup, "spec", withoutObserve) },
			condition: fleetv1alpha1.ConditionPreflight, want: fleetv1alpha1.ReasonKindsTooOld,
		},
		"PolicyIsDropped": {
			reason:    "A webhook removes the policies, although the CRD has the field. The dry run shows it.",
			arrange:   func(h *hubOfOneImport) { h.hub.drops = []string{"spec", "managementPolicies"} },
			condition: fleetv1alpha1.ConditionPreflight, want: fleetv1alpha1.ReasonKindsTooOld,
		},
		"IdentifierIsDropped": {
			reason:    "Without its region the resource is another one.",
			arrange:   func(h *hubOfOneImport) { h.hub.drops = []string{"spec", "forProvider", "region"} },
			condition: fleetv1alpha1.ConditionPreflight, want: fleetv1alpha1.ReasonKindsTooOld,
		},
		"FieldIsRefused": {
			reason:    "Strict validation refuses a field that the CRD does not know.",
			arrange:   func(h *hubOfOneImport) { h.hub.refuses = reflection.EKSCluster.Namespaced() },
			condition: fleetv1alpha1.ConditionPreflight, want: fleetv1alpha1.ReasonKindsTooOld,
		},
		"KindMissing": {
			reason: "No Crossplane provider serves it.", arrange: func(h *hubOfOneImport) { h.hub.hide(reflection.EKSNodeGroup) },
			condition: fleetv1alpha1.ConditionPreflight, want: fleetv1alpha1.ReasonKindsMissing,
		},
		"KindInactive": {
			reason: "Its ManagedResourceDefinition is there and not active.", others: []client.Object{resourceDefinition("nodegroups.eks.aws.m.upbound.io", "Inactive")},
			arrange:   func(h *hubOfOneImport) { h.hub.hide(reflection.EKSNodeGroup) },
			condition: fleetv1alpha1.ConditionPreflight, want: fleetv1alpha1.ReasonKindsInactive,
		},
		"LegacyKindInactive": {
			reason: "So it is in the cluster-scoped group.", others: []client.Object{resourceDefinition("nodegroups.eks.aws.upbound.io", "Inactive")},
			arrange:   func(h *hubOfOneImport) { h.hub.hide(reflection.EKSNodeGroup) },
			condition: fleetv1alpha1.ConditionPreflight, want: fleetv1alpha1.ReasonKindsInactive,
		},
		"KindActiveAndNotServed": {
			reason: "It was activated, and its CRD is not there yet.", others: []client.Object{resourceDefinition("nodegroups.eks.aws.m.upbound.io", "Active")},
			arrange:   func(h *hubOfOneImport) { h.hub.hide(reflection.EKSNodeGroup) },
			condition: fleetv1alpha1.ConditionPreflight, want: fleetv1alpha1.ReasonKindsMissing,
		},
		"ReflectedKindMissing": {
			reason:    "The provider of Cluster API is not installed.",
			arrange:   func(h *hubOfOneImport) { h.hub.hideKind(importertest.ReflectedKinds(reflection.EKS)[1].GroupKind()) },
			condition: fleetv1alpha1.ConditionPreflight, want: fleetv1alpha1.ReasonKindsMissing,
		},
		"NoRights": {
			reason:    "config/imports was not applied. The manager may not look for the kinds either.",
			arrange:   func(h *hubOfOneImport) { h.hub.denied = createObjects; h.hub.hide(reflection.EKSNodeGroup) },
			condition: fleetv1alpha1.ConditionPreflight, want: fleetv1alpha1.ReasonRightsMissing,
		},
		"NoRightToCreate": {
			reason:    "The rights of another cloud were granted.",
			arrange:   func(h *hubOfOneImport) { h.hub.denied = "create nodegroups.eks.aws.m.upbound.io" },
			condition: fleetv1alpha1.ConditionPreflight, want: fleetv1alpha1.ReasonRightsMissing,
		},
		"NoRightToDelete": {
			reason:    "What could not be removed again is not made.",
			arrange:   func(h *hubOfOneImport) { h.hub.denied = "delete machinepools.cluster.x-k8s.io" },
			condition: fleetv1alpha1.ConditionPreflight, want: fleetv1alpha1.ReasonRightsMissing,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			imp := anImport()
			if tc.change != nil {
				tc.change(imp)
			}
			h := newHub(t, imp, tc.others...)
			if tc.arrange != nil {
				tc.arrange(h)
			}
			h.settle()
			h.want(tc.condition, tc.want)
			if made := h.made(); len(made) > 0 {
				t.Errorf("%s\nwant nothing, got %v", tc.reason, made)
			}
		})
	}
}

// TestAManagedResourceThatMayDoMoreIsNotDeleted: its deletion could be that of the cluster.
func TestAManagedResourceThatMayDoMoreIsNotDeleted(t *testing.T) {
	h := newHub(t, anImport())
	h.settle()
	cluster := h.list(reflection.EKSCluster.Namespaced().WithVersion("v1beta1"))[0]
	if err := unstructured.SetNestedStringSlice(cluster.Object, []string{"*"}, "spec", "managementPolicies"); err != nil {
		t.Fatal(err)
	}
	if err := h.c.Update(t.Context(), &cluster); err != nil {
		t.Fatal(err)
	}
	h.settle()
	h.want(fleetv1alpha1.ConditionObserved, fleetv1alpha1.ReasonUnexpectedPolicy)
	if err := h.c.Delete(t.Context(), h.get()); err != nil {
		t.Fatal(err)
	}
	h.settle()
	h.want(fleetv1alpha1.ConditionObserved, fleetv1alpha1.ReasonUnexpectedPolicy)
	if left := h.list(reflection.EKSCluster.Namespaced().WithVersion("v1beta1")); len(left) != 1 {
		t.Errorf("want the managed resource left alone, got %v", left)
	}
}
