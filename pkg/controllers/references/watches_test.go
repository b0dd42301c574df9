// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/references"
)

// TestWatchWithRightsInOneNamespace: a Role for one ConfigMap permits to follow it. Without, the object says that it
// does not follow at once.
func TestWatchWithRightsInOneNamespace(t *testing.T) {
	granted, other := namespace(t), namespace(t)
	user := "limited-to-" + granted
	meta := metav1.ObjectMeta{Namespace: granted, Name: "follow"}
	create(t, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"settings"}, Verbs: []string{"list", "watch"},
	}}}, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, configMap(granted, "settings", nil), configMap(other, "settings", nil))
	cfg := rest.CopyConfig(apiConfig)
	cfg.Impersonate.UserName = user
	_, w := idleIn(t, cfg, workloadA)
	startWatcher(t, w)
	source := func(ns string) references.Source {
		return references.Source{
			GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: "configmaps",
			NamespacedName: types.NamespacedName{Namespace: ns, Name: "settings"},
		}
	}
	for name, tc := range map[string]struct {
		sources []references.Source
		want    coverage
	}{
		"granted": {sources: []references.Source{source(granted)}, want: coverage{all: true}},
		"other": {
			sources: []references.Source{source(granted), source(other)}, want: coverage{why: "the manager may not list and watch configmaps"},
		},
	} {
		var got coverage
		if err := testenv.Poll(t.Context(), patience, func(context.Context) (bool, error) {
			got, _ = w.depend(thing(name), 0, tc.sources)
			return got == tc.want, nil
		}); err != nil {
			t.Errorf("%s: want %+v, got %+v: %v", name, tc.want, got, err)
		}
	}
}
