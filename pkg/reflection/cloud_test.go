// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/importertest"
	"github.com/masthead-dev/masthead/internal/test/providercrds"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/controllers/importer" //nolint:depguard // Only this package's tests can add a cloud.
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// TestAnotherCloud adds a cloud (cloud_toy_test.go) and its rights to a hub: a cluster is imported, nothing of it can
// be taken over, and un-import leaves nothing.
//
//nolint:paralleltest // It changes the table of clouds.
func TestAnotherCloud(t *testing.T) {
	reflection.AddToy(t)
	reflection.AddToyPolicies(t)
	hub := startToyHub(t)
	api := hub.CreateAPI(t, "toy", importertest.Reader)
	token, err := api.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{StringData: map[string]string{"token": token}}
	secret.Namespace, secret.Name, secret.Labels = metav1.NamespaceDefault, "toy", map[string]string{fleetv1alpha1.ImportCredentialsLabel: "true"}
	hub.Create(t, secret)
	imp := importertest.NewImport("shop", fleetv1alpha1.ClusterImportSpec{
		GKE: &fleetv1alpha1.GKEImport{Location: "toy-attic1", ClusterName: "shop"},
		Kubeconfig: &fleetv1alpha1.ImportKubeconfig{
			Source: fleetv1alpha1.KubeconfigSourceToken, TokenSecretRef: &fleetv1alpha1.SecretKeyReference{Name: "toy", Key: "token"},
		},
	})
	hub.Create(t, imp)
	var mr *unstructured.Unstructured // The provider observes when it is not paused any more.
	importertest.Eventually(t, "the import observes", func() (bool, string) {
		for _, o := range hub.ListLabelled(t, imp, hub.ManagedKind(t, reflection.ToyCluster)) {
			mr = &o
		}
		_ = hub.Client.Get(t.Context(), client.ObjectKeyFromObject(imp), imp)
		return mr != nil && mr.GetAnnotations()[reflection.ManagedPausedAnnotation] == "", fmt.Sprint(imp.Status.Conditions)
	})
	mr.Object["status"] = map[string]any{
		"conditions": []any{map[string]any{"type": "Synced", "status": "True"}, map[string]any{"type": "Ready", "status": "True"}},
		"atProvider": map[string]any{
			"uuid": "7f1c", "endpoint": api.Server, "authority": api.CA, "version": "v1.31.2",
			"pools": []any{map[string]any{"name": "Blue", "size": 2}, map[string]any{"name": "Green", "size": 0}},
		},
	}
	if err := hub.Client.Status().Update(t.Context(), mr); err != nil {
		t.Fatal(err)
	}
	hub.WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	var kinds []string
	for _, o := range listMade(t, hub, imp) {
		kinds = append(kinds, o.GetKind())
		checkHeld(t, hub, &o)
	}
	if diff := cmp.Diff([]string{
		"Cluster", "ToyCluster", "ToyControlPlane", "ToyMachinePool", "ToyMachinePool", "Cluster", "MachinePool", "MachinePool",
	}, kinds); diff != "" {
		t.Errorf("made kinds: -want, +got:\n%s", diff)
	}
	checkToyOwnership(t, imp, mr)
	if err := hub.Client.Delete(t.Context(), imp); err != nil {
		t.Fatal(err)
	}
	importertest.Eventually(t, "the import is gone", func() (bool, string) {
		err := hub.Client.Get(t.Context(), client.ObjectKeyFromObject(imp), imp)
		return apierrors.IsNotFound(err), fmt.Sprint(imp.Status.Conditions)
	})
	if left := listMade(t, hub, imp); len(left) > 0 {
		t.Errorf("un-import leaves %v", left)
	}
}

// listMade are the objects of an import: the managed resource, and those of Cluster API.
func listMade(t *testing.T, hub *importertest.Hub, imp *fleetv1alpha1.ClusterImport) (all []unstructured.Unstructured) {
	t.Helper()
	for _, kind := range append([]schema.GroupKind{reflection.ToyCluster.Namespaced()}, reflection.ReflectedKinds(reflection.Toy)...) {
		mapping, err := hub.Client.RESTMapper().RESTMapping(kind)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, hub.ListLabelled(t, imp, mapping.GroupVersionKind)...)
	}
	return all
}

// checkHeld tries what would let a provider act on an object, or on the cluster.
func checkHeld(t *testing.T, hub *importertest.Hub, o *unstructured.Unstructured) {
	t.Helper()
	gk, policy := o.GroupVersionKind().GroupKind(), "reflections.imports"
	switch {
	case reflection.ToyCluster.Is(gk):
		policy = "managed-resources.imports"
		checkFixed(t, hub, policy, o, []any{"*"}, "spec", "managementPolicies")
		checkFixed(t, hub, policy, o, "v2", "spec", "forProvider", "version")
		checkOnlyManager(t, hub, o)
	case gk.Group == clusterv1.GroupVersion.Group:
		policy = "cluster-api.imports"
		if gk.Kind == "MachinePool" { // Both refuse that it loses its label, and the API server names one of them.
			policy += "|members.imports"
		}
	case gk.Kind == "ToyCluster":
		checkFixed(t, hub, policy, o, "admin", "spec", "credentialsRef", "name")
	}
	checkFixed(t, hub, policy, o, nil, "metadata", "labels")
	if gk.Kind != "Cluster" { // Core may act on it, and the provider that observes.
		checkFixed(t, hub, policy, o, nil, "metadata", "annotations", clusterv1.PausedAnnotation)
	}
	if !reflection.ToyCluster.Is(gk) { // Nothing is deleted in the cloud with it.
		checkRefused(t, policy, hub.Client.Delete(t.Context(), o, client.DryRunAll))
	}
}

// checkOnlyManager tries to manage the cluster with another managed resource.
func checkOnlyManager(t *testing.T, hub *importertest.Hub, mr *unstructured.Unstructured) {
	t.Helper()
	other := mr.DeepCopy()
	other.Object["metadata"] = map[string]any{"namespace": mr.GetNamespace(), "name": "shop"}
	unstructured.RemoveNestedField(other.Object, "spec", "managementPolicies")
	importertest.Eventually(t, "the API server reads the import", func() (bool, string) {
		err := hub.Client.Create(t.Context(), other.DeepCopy(), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'managers.imports"), fmt.Sprint(err)
	})
}

// checkFixed checks that no user can give a field another value.
func checkFixed(t *testing.T, hub *importertest.Hub, policy string, o *unstructured.Unstructured, value any, field ...string) {
	t.Helper()
	changed := o.DeepCopy()
	if err := unstructured.SetNestedField(changed.Object, value, field...); err != nil {
		t.Fatal(err)
	}
	checkRefused(t, policy, hub.Client.Patch(t.Context(), changed, client.MergeFrom(o), client.DryRunAll))
}

func checkRefused(t *testing.T, policy string, err error) {
	t.Helper()
	refused := regexp.MustCompile("ValidatingAdmissionPolicy '(" + policy + ")")
	if !apierrors.IsForbidden(err) || !refused.MatchString(err.Error()) {
		t.Errorf("want a refusal by the policy %s, got %v", policy, err)
	}
}

// startToyHub starts a hub with the kinds of the cloud's providers, and the importer with the rights of config.
func startToyHub(t *testing.T) *importertest.Hub {
	t.Helper()
	hub, err := importertest.Start(t.Context(), slices.Concat(providercrds.ClusterAPI(), providercrds.Machines()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hub.Stop(); err != nil {
			t.Error(err)
		}
	})
	if _, err := envtest.InstallCRDs(hub.Config, envtest.CRDInstallOptions{MaxTime: testenv.Patience, CRDs: []*apiextensionsv1.CustomResourceDefinition{
		toyCRD(t, "kubernetes.toy.m.upbound.io", "v1beta1", "Cluster", "managementPolicies: {type: array, items: {type: string, enum: [Observe, LateInitialize, '*']}}"),
		toyCRD(t, "toy.m.upbound.io", "v1beta1", "ProviderConfig", ""),
		toyCRD(t, "infrastructure.cluster.x-k8s.io", "v1", "ToyCluster",
			"credentialsRef: {type: object, properties: {name: {type: string}, namespace: {type: string}}}"),
		toyCRD(t, "infrastructure.cluster.x-k8s.io", "v1", "ToyControlPlane", "version: {type: string}"),
		toyCRD(t, "infrastructure.cluster.x-k8s.io", "v1", "ToyMachinePool", "size: {type: integer}"),
	}}); err != nil {
		t.Fatal(err)
	}
	hub.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "toy.m.upbound.io/v1beta1", "kind": "ProviderConfig", "metadata": map[string]any{"namespace": "default", "name": "customer"},
	}})
	imports := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "clusterimports.fleet.masthead.dev"},
	}}
	named := `[{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/observed/properties/cloud/enum/-", "value": "Toy"}]`
	if err := hub.Client.Patch(t.Context(), imports, client.RawPatch(types.JSONPatchType, []byte(named))); err != nil {
		t.Fatal(err)
	}
	as := rest.CopyConfig(hub.Config)
	as.Impersonate = rest.ImpersonationConfig{UserName: "importer", Groups: []string{"system:authenticated"}}
	grantToy(t, hub)
	mgr := controllertest.NewManager(t, as, controllertest.Scheme())
	o := importer.Options{Credentials: credentials.Options{AllowLoopback: true}, SkipNameValidation: new(true)}
	if err := importer.SetupWithManager(mgr.GetLocalManager(), o); err != nil {
		t.Fatal(err)
	}
	mgr.Run()
	return hub
}

// grantToy grants the importer what every import needs, and what those from GKE need of the cloud's kinds instead.
func grantToy(t *testing.T, hub *importertest.Hub) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "importer"}}
	toy := strings.NewReplacer("container.gcp.", "kubernetes.toy.", "gcp.", "toy.", "gcpmanaged", "toy")
	for _, name := range []string{"rbac", "imports/base", "imports/gke"} {
		content, err := os.ReadFile("../../config/" + name + "/role.yaml")
		some := &rbacv1.ClusterRole{}
		if err := errors.Join(err, yaml.Unmarshal([]byte(toy.Replace(string(content))), some)); err != nil {
			t.Fatal(err)
		}
		role.Rules = append(role.Rules, some.Rules...)
	}
	hub.Create(t, role)
	hub.Create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "importer"}},
	})
}

// toyCRD has the given fields in its spec.
func toyCRD(t *testing.T, group, version, kind, fields string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd, text := &apiextensionsv1.CustomResourceDefinition{}, fmt.Sprintf(`
metadata: {name: %[1]ss.%[2]s}
spec:
  group: %[2]s
  scope: Namespaced
  names: {kind: %[3]s, listKind: %[3]sList, plural: %[1]ss, singular: %[1]s}
  versions:
  - {name: %[4]s, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, properties: {
      spec: {type: object, %[6]s, properties: {%[5]s}},
      status: {type: object, %[6]s, properties: {initialization: {type: object, properties: {provisioned: {type: boolean}, controlPlaneInitialized: {type: boolean}}}}}}}}}
`, strings.ToLower(kind), group, kind, version, fields, "x-kubernetes-preserve-unknown-fields: true")
	if err := yaml.UnmarshalStrict([]byte(text), crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

// checkToyOwnership checks that the questions of the importer are answered for the cloud.
func checkToyOwnership(t *testing.T, from *fleetv1alpha1.ClusterImport, mr *unstructured.Unstructured) {
	t.Helper()
	imp := reflection.Import{Namespace: from.Namespace, Name: from.Name, UID: from.UID}
	if reflection.FindCluster(&imp, &from.Spec) || imp.Cloud != reflection.Toy {
		t.Errorf("want the spec to name a cluster of the cloud, whose provider publishes nothing, got %v", imp)
	}
	other := imp
	other.ClusterName, other.Place = "SHOP", "Toy-Attic1"
	if !other.Names(mr) || !other.NamesSame(imp) || !other.IsAt(mr) || other.ObservedID(mr) != "7f1c" {
		t.Error("want the managed resource to be the cluster of the import, in any case of its letters")
	}
	if other.Place = "a place"; other.NamesSame(imp) || other.IsAt(mr) {
		t.Error("want no other place taken for that of the import")
	}
	if err := other.Validate(); err == nil || !strings.Contains(err.Error(), "location of Toy") {
		t.Errorf("want a place refused that is none, got %v", err)
	}
	if !slices.Contains(reflection.NodeLabels(), "toy.example.org/pool") {
		t.Error("want the label read that names the pool of a Node")
	}
}
