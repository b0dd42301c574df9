// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"context"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/internal/test/imported"
	"github.com/masthead-dev/masthead/pkg/takeover"
)

// TestLabelOfAnImportTakesARight: a user who may create objects of every kind cannot create one with the label of an
// import, like a copy or a restored backup of one. The importer would take it for its own and delete it. A user who has
// the right can create one, and everybody can change and delete existing ones by the other rules of the policies.
func TestLabelOfAnImportTakesARight(t *testing.T) {
	var groups []string
	for _, crd := range crds {
		groups = append(groups, crd.Spec.Group)
	}
	all := rbacv1.PolicyRule{APIGroups: groups, Resources: []string{"*"}, Verbs: []string{"*"}}
	tenant := user(t, "tenant", all)
	owner := user(t, "owner", all,
		// The rights of an owner of imports do not include this right.
		rbacv1.PolicyRule{APIGroups: []string{"fleet.masthead.dev"}, Resources: []string{"clusterimports", "clusterimports/status"}, Verbs: []string{"*"}})
	importer := user(t, "importer", all,
		rbacv1.PolicyRule{APIGroups: []string{"fleet.masthead.dev"}, Resources: []string{"clusterimports/objects"}, Verbs: []string{"create"}})

	const message = "clusterimports/objects"
	for _, crd := range crds {
		kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
		if fieldEdits(crd) == nil {
			continue // ProviderConfigs belong to their administrator.
		}
		t.Run(kind.String(), func(t *testing.T) {
			create := func(c client.Client, name string, labelled bool) error {
				o := object(t, kind, name)
				if !labelled {
					o.SetLabels(nil)
				}
				return c.Create(t.Context(), o, client.DryRunAll)
			}
			judge(t, "create with every right to the kind", edit{refused: message}, create(tenant, "copied", true))
			judge(t, "create with the rights to ClusterImports", edit{refused: message}, create(owner, "copied", true))
			judge(t, "create with the right", edit{}, create(importer, "copied", true))
			judge(t, "create without the label", edit{}, create(tenant, "unlabelled", false))
			apply := object(t, kind, "applied")
			judge(t, "create by server-side apply", edit{refused: message}, tenant.Apply(t.Context(),
				client.ApplyConfigurationFromUnstructured(apply), client.FieldOwner("tenant"), client.DryRunAll))

			free := object(t, kind, "free")
			labels := free.GetLabels()
			free.SetLabels(nil)
			if err := hub.Create(t.Context(), free); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := hub.Delete(context.WithoutCancel(t.Context()), free); err != nil {
					t.Error(err)
				}
			})
			labelled := free.DeepCopy()
			labelled.SetLabels(labels)
			judge(t, "add the label", edit{refused: "labels of an import"}, importer.Update(t.Context(), labelled, client.DryRunAll))

			there := object(t, kind, "there")
			if err := hub.Create(t.Context(), there); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { purge(t, there) })
			setLabel("team", "shop")(there)
			judge(t, "update", edit{}, tenant.Update(t.Context(), there, client.DryRunAll))
			if strings.HasSuffix(kind.Group, "cluster.x-k8s.io") && !strings.HasSuffix(kind.Kind, "Identity") {
				annotate(there, takeover.AllowUnimportAnnotation, imported.UID)
				if err := tenant.Update(t.Context(), there); err != nil {
					t.Fatal(err)
				}
			}
			judge(t, "delete", edit{}, tenant.Delete(t.Context(), there, client.DryRunAll))
		})
	}
}

// user returns a client for the hub with these rights in the whole hub, and no others.
func user(t *testing.T, name string, rules ...rbacv1.PolicyRule) client.Client {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "label-" + name}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}
	for _, o := range []client.Object{role, binding} {
		if err := hub.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := hub.Delete(context.WithoutCancel(t.Context()), o); err != nil {
				t.Error(err)
			}
		})
	}
	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{UserName: name}
	c, err := client.New(as, client.Options{Scheme: hub.Scheme(), Mapper: hub.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
