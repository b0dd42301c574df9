// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/internal/test/imported"
	"github.com/masthead-dev/masthead/pkg/takeover"
)

// edit is a change of an object, and whether the policies allow it.
type edit struct {
	reason string
	// refused is part of what the policy says. Empty: the edit is allowed.
	refused string
	// updateOnly edits are harmless or impossible when the object is created.
	updateOnly bool
	change     func(*unstructured.Unstructured)
}

// TestAdmissionMatrix sends, for every kind that an import creates, each edit that could take the cluster over: when
// the object is created, and when it exists. The policies do not refuse the same edits of an object without the label
// of an import.
func TestAdmissionMatrix(t *testing.T) {
	for _, crd := range crds {
		kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
		edits := fieldEdits(crd)
		if edits == nil {
			continue // ProviderConfigs belong to their administrator.
		}
		t.Run(kind.String(), func(t *testing.T) {
			base := object(t, kind, "matrix")
			if err := hub.Create(t.Context(), base); err != nil {
				t.Fatalf("the policies refuse what an import makes: %v", err)
			}
			t.Cleanup(func() { purge(t, base) })
			for _, edit := range edits {
				t.Run(edit.reason, func(t *testing.T) {
					changed := base.DeepCopy()
					edit.change(changed)
					judge(t, "update", edit, hub.Update(t.Context(), changed, client.DryRunAll))

					if edit.updateOnly {
						return
					}
					created := object(t, kind, "matrix-created")
					edit.change(created)
					judge(t, "create", edit, hub.Create(t.Context(), created, client.DryRunAll))

					free := object(t, kind, "matrix-free")
					edit.change(free)
					free.SetLabels(nil)
					if err := hub.Create(t.Context(), free, client.DryRunAll); err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
						t.Errorf("create without the label: the policies concern an object that is no import's: %v", err)
					}
				})
			}
		})
	}
}

// judge compares an answer of the API server with what the policies must say. What the CRD refuses by itself is refused
// too.
func judge(t *testing.T, verb string, edit edit, answer error) {
	t.Helper()
	switch {
	case edit.refused == "" && answer != nil:
		t.Errorf("%s: must be allowed: %v", verb, answer)
	case edit.refused == "":
	case answer == nil:
		t.Errorf("%s: must be refused", verb)
	case apierrors.IsInvalid(answer):
	case !strings.Contains(answer.Error(), edit.refused):
		t.Errorf("%s: must be refused because %q, got: %v", verb, edit.refused, answer)
	}
}

func object(t *testing.T, kind schema.GroupKind, name string) *unstructured.Unstructured {
	t.Helper()
	object, err := imported.Object(kind, versions[kind], namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// purge removes an object that the policies protect, in the way that they allow.
func purge(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	if err := hub.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		if client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
		return
	}
	annotate(object, takeover.AllowUnimportAnnotation, imported.UID)
	if err := errors.Join(hub.Update(ctx, object), hub.Delete(ctx, object)); err != nil {
		t.Errorf("the policies refuse what an un-import does: %v", err)
	}
}

func annotate(object *unstructured.Unstructured, key, value string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	object.SetAnnotations(annotations)
}

func dropAnnotation(key string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		annotations := object.GetAnnotations()
		delete(annotations, key)
		object.SetAnnotations(annotations)
	}
}

func setSpec(value any, path ...string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(object.Object, value, append([]string{"spec"}, path...)...)
	}
}

func dropSpec(path ...string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		unstructured.RemoveNestedField(object.Object, append([]string{"spec"}, path...)...)
	}
}

func setLabel(key, value string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		labels := object.GetLabels()
		if labels[key] = value; value == "" {
			delete(labels, key)
		}
		object.SetLabels(labels)
	}
}

// labelEdits concern every object of an import.
func labelEdits() []edit {
	const message = "labels of an import"
	return []edit{
		{"drop the label", message, true, setLabel(imported.UIDLabel, "")},
		{"change the label", message, true, setLabel(imported.UIDLabel, "another")},
		{"drop the name of the import", message, true, setLabel(imported.NameLabel, "")},
		{"add a label of one's own", "", false, setLabel("team", "shop")},
	}
}

// fieldEdits are the edits of a kind, made from its schema.
func fieldEdits(crd *apiextensionsv1.CustomResourceDefinition) []edit {
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	kind := crd.Spec.Names.Kind
	switch {
	case strings.Contains(kind, "ProviderConfig"):
		return nil
	case strings.HasSuffix(crd.Spec.Group, ".upbound.io"):
		return append(labelEdits(), managedResourceEdits(kind, spec)...)
	case strings.HasSuffix(kind, "Identity"):
		return append(labelEdits(), identityEdits(spec)...)
	case crd.Spec.Group == "cluster.x-k8s.io":
		return append(labelEdits(), clusterAPIEdits(kind)...)
	default:
		return append(labelEdits(), reflectionEdits(spec)...)
	}
}

func managedResourceEdits(kind string, spec apiextensionsv1.JSONSchemaProps) []edit {
	edits := []edit{
		{"add the provider's finalizer", "", false, func(o *unstructured.Unstructured) {
			o.SetFinalizers([]string{"finalizer.managedresource.crossplane.io"})
		}},
		{"pause", "", false, func(o *unstructured.Unstructured) { annotate(o, "crossplane.io/paused", "true") }},
		{"name another ProviderConfig", "providerConfigRef", true, setSpec("another", "providerConfigRef", "name")},
	}
	const policies = "managementPolicies"
	for _, actions := range [][]any{{}, {"Observe", "LateInitialize"}, {"Observe", "Delete"}, {"Observe", "Update"}, {"Delete", "Observe"}} {
		edits = append(edits, edit{fmt.Sprint("set the policies to ", actions), policies, false, setSpec(actions, policies)})
	}
	if kind == "ClusterAuth" {
		edits = append(edits, edit{"only observe", policies, false, setSpec([]any{"Observe"}, policies)})
	} else {
		edits = append(edits,
			edit{"drop the policies", policies, false, dropSpec(policies)},
			edit{"set all policies", policies, false, setSpec([]any{"*"}, policies)},
			edit{"drop the external name", "external-name", false, dropAnnotation(imported.ExternalNameAnnotation)},
			edit{"change the external name", "external-name", true, func(o *unstructured.Unstructured) {
				annotate(o, imported.ExternalNameAnnotation, "another")
			}},
		)
	}
	if _, ok := spec.Properties["deletionPolicy"]; ok {
		edits = append(edits,
			edit{"delete with the resource", "deletionPolicy", false, setSpec("Delete", "deletionPolicy")},
			edit{"drop the deletionPolicy", "deletionPolicy", false, dropSpec("deletionPolicy")},
		)
	}
	identifiers := []string{
		"region", "clusterName", "refreshPeriod", "resourceGroupName", "kubernetesClusterId", "location", "project", "cluster", "addonName", "principalArn",
	}
	// One field of each kind would do. All of them are cheap, and the list is the provider's.
	for field, property := range spec.Properties["forProvider"].Properties {
		if property.Type == "string" && len(property.Enum) == 0 && !slices.Contains(identifiers, field) {
			edits = append(edits, edit{"set forProvider." + field, "what names the resource", false, setSpec("x", "forProvider", field)})
		}
	}
	for field, property := range spec.Properties["initProvider"].Properties {
		if property.Type == "string" && len(property.Enum) == 0 {
			edits = append(edits, edit{"set initProvider." + field, "initProvider", false, setSpec("x", "initProvider", field)})
		}
	}
	return edits
}

func reflectionEdits(spec apiextensionsv1.JSONSchemaProps) []edit {
	edits := []edit{
		{"drop managed-by", "managed-by", false, dropAnnotation(imported.ManagedByAnnotation)},
		{"change managed-by", "managed-by", false, func(o *unstructured.Unstructured) { annotate(o, imported.ManagedByAnnotation, "another") }},
		{"drop the pause", "paused", false, dropAnnotation(imported.PausedAnnotation)},
		{"add an owner", "", false, func(o *unstructured.Unstructured) {
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", Name: "x", UID: "y"}})
		}},
		{"allow the un-import", "", false, func(o *unstructured.Unstructured) { annotate(o, takeover.AllowUnimportAnnotation, imported.UID) }},
	}
	for _, finalizer := range []string{
		"awsmanagedcontrolplane.controlplane.cluster.x-k8s.io", "azuremanagedcontrolplane.infrastructure.cluster.x-k8s.io",
		"gcpmanagedcluster.infrastructure.cluster.x-k8s.io", "example.org/anybody", metav1.FinalizerDeleteDependents,
	} {
		edits = append(edits, edit{"add the finalizer " + finalizer, "finalizer", false, func(o *unstructured.Unstructured) {
			o.SetFinalizers([]string{finalizer})
		}})
	}
	if _, ok := spec.Properties["providerIDList"]; ok {
		edits = append(edits, edit{"list Nodes", "providerIDList", false, setSpec([]any{"aws:///eu-central-1a/i-0"}, "providerIDList")})
	}
	for _, field := range []string{"identityRef", "credentialsRef"} {
		if _, ok := spec.Properties[field]; ok {
			edits = append(edits,
				edit{"drop the " + field, "identity", false, dropSpec(field)},
				edit{"change the " + field, "identity", true, setSpec("default", field, "name")},
			)
		}
	}
	if _, ok := spec.Properties["eksClusterName"]; ok {
		edits = append(edits, edit{"use the controller's identity", "identity", false,
			setSpec(map[string]any{"kind": "AWSClusterControllerIdentity", "name": "default"}, "identityRef")})
	}
	return edits
}

func clusterAPIEdits(kind string) []edit {
	if kind == "Cluster" {
		return []edit{
			{"set a topology", "topology", false, setSpec(map[string]any{"classRef": map[string]any{"name": "x"}, "version": "v1.31.0"}, "topology")},
			{"add core's finalizer", "", false, func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"cluster.cluster.x-k8s.io"}) }},
			{"pause", "", false, setSpec(true, "paused")},
		}
	}
	return []edit{
		{"drop the pause", "paused", false, dropAnnotation(imported.PausedAnnotation)},
		{"list Nodes", "providerIDList", false, setSpec([]any{"aws:///eu-central-1a/i-0"}, "providerIDList")},
		{"add core's finalizer", "", false, func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"machinepool.cluster.x-k8s.io"}) }},
	}
}

func identityEdits(spec apiextensionsv1.JSONSchemaProps) []edit {
	edits := []edit{
		{"allow every namespace", "allowedNamespaces", false, setSpec(map[string]any{}, "allowedNamespaces")},
		{"allow one namespace", "allowedNamespaces", false, setSpec(map[string]any{"list": []any{namespace}}, "allowedNamespaces")},
	}
	if spec.Properties["allowedNamespaces"].Nullable {
		edits = append(edits, edit{"allow nothing, in writing", "allowedNamespaces", false, setSpec(nil, "allowedNamespaces")})
	}
	return edits
}

// TestDeletion: an object for an imported cluster is deleted by its import alone, and in no way that gives it a
// finalizer.
func TestDeletion(t *testing.T) {
	collector := impersonating(t, "system:serviceaccount:kube-system:generic-garbage-collector")
	for _, crd := range crds {
		kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
		if !strings.HasSuffix(kind.Group, "cluster.x-k8s.io") || strings.HasSuffix(kind.Kind, "Identity") {
			continue
		}
		t.Run(kind.String(), func(t *testing.T) {
			base := object(t, kind, "deleted")
			if err := hub.Create(t.Context(), base); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { purge(t, base) })
			foreground, orphan := metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan
			remove := func(c client.Client, options ...client.DeleteOption) error {
				return c.Delete(t.Context(), base, append(options, client.DryRunAll)...)
			}
			const message, background = "is deleted by its import", "propagation policy Background"
			judge(t, "delete", edit{refused: message}, remove(hub))
			judge(t, "delete", edit{refused: background}, remove(collector, client.PropagationPolicy(foreground)))
			judge(t, "delete", edit{refused: background}, remove(collector, client.PropagationPolicy(orphan)))
			judge(t, "delete", edit{}, remove(collector))
			judge(t, "delete all", edit{refused: message}, hub.DeleteAllOf(t.Context(), base, client.InNamespace(namespace), client.DryRunAll))

			annotate(base, takeover.AllowUnimportAnnotation, "another")
			if err := hub.Update(t.Context(), base); err != nil {
				t.Fatal(err)
			}
			judge(t, "delete with the annotation of another import", edit{refused: message}, remove(hub))
			annotate(base, takeover.AllowUnimportAnnotation, imported.UID)
			if err := hub.Update(t.Context(), base); err != nil {
				t.Fatal(err)
			}
			judge(t, "delete with the annotation", edit{}, remove(hub))
			judge(t, "delete with the annotation", edit{refused: background}, remove(hub, client.PropagationPolicy(foreground)))
			judge(t, "delete with the annotation", edit{refused: background}, remove(hub, client.PropagationPolicy(orphan)))
		})
	}
}

// TestManagedResourceThatIsBeingDeleted: a user who lets it do more than observe while it is being deleted would make
// its provider delete the resource in the cloud.
func TestManagedResourceThatIsBeingDeleted(t *testing.T) {
	kind := schema.GroupKind{Group: "eks.aws.upbound.io", Kind: "NodeGroup"}
	dying := object(t, kind, "dying")
	dying.SetFinalizers([]string{"finalizer.managedresource.crossplane.io"})
	if err := errors.Join(hub.Create(t.Context(), dying), hub.Delete(t.Context(), dying)); err != nil {
		t.Fatal(err)
	}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(dying), dying); err != nil {
		t.Fatal(err)
	}
	changed := dying.DeepCopy()
	setSpec([]any{"Observe", "Delete"}, "managementPolicies")(changed)
	judge(t, "update", edit{refused: "managementPolicies"}, hub.Update(t.Context(), changed))
	dying.SetFinalizers(nil)
	judge(t, "remove the finalizer", edit{}, hub.Update(t.Context(), dying))
}

// TestMachinePoolThatIsBeingDeleted: core removes its finalizer only from a MachinePool that is not paused.
func TestMachinePoolThatIsBeingDeleted(t *testing.T) {
	pool := object(t, schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "MachinePool"}, "dying")
	pool.SetFinalizers([]string{"machinepool.cluster.x-k8s.io"})
	annotate(pool, takeover.AllowUnimportAnnotation, imported.UID)
	if err := errors.Join(hub.Create(t.Context(), pool), hub.Delete(t.Context(), pool)); err != nil {
		t.Fatal(err)
	}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(pool), pool); err != nil {
		t.Fatal(err)
	}
	dropAnnotation(imported.PausedAnnotation)(pool)
	judge(t, "drop the pause", edit{}, hub.Update(t.Context(), pool))
	pool.SetFinalizers(nil)
	judge(t, "remove the finalizer", edit{}, hub.Update(t.Context(), pool))
}

func impersonating(t *testing.T, user string) client.Client {
	t.Helper()
	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
	c, err := client.New(as, client.Options{Scheme: hub.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
