// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
)

// TestRemoveConnectionSecret: only the Secret that a managed resource of the import published is deleted, when none
// asks for it any more. A policy that keeps it stops nothing else, and the condition says so.
func TestRemoveConnectionSecret(t *testing.T) {
	refusal := apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "shop-import-connection", nil)
	for name, tc := range map[string]struct {
		controller types.UID
		published  bool
		refusal    error
		isGone     bool
		requeues   bool
	}{
		"Published":      {controller: "managed", published: true},
		"LeftBehind":     {controller: "managed", isGone: true, requeues: true},
		"OfAnother":      {controller: "another"},
		"WithoutControl": {},
		"Kept":           {controller: "managed", refusal: refusal, requeues: true},
	} {
		t.Run(name, func(t *testing.T) {
			imp := &fleetv1alpha1.ClusterImport{ObjectMeta: metav1.ObjectMeta{Namespace: "customers", Name: "shop"}}
			imp.Spec.AKS = &fleetv1alpha1.AKSImport{ClusterName: "prod"}
			imp.Spec.Kubeconfig = &fleetv1alpha1.ImportKubeconfig{Source: fleetv1alpha1.KubeconfigSourceNone}
			m := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
			m.SetUID("managed")
			if tc.published {
				m.Object["spec"] = map[string]any{"writeConnectionSecretToRef": map[string]any{"name": "shop-import-connection"}}
			}
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "customers", Name: "shop-import-connection"}}
			if tc.controller != "" {
				secret.OwnerReferences = []metav1.OwnerReference{{UID: tc.controller, Controller: new(true)}}
			}
			hub := fake.NewClientBuilder().WithScheme(controllertest.Scheme()).WithObjects(secret).
				WithInterceptorFuncs(interceptor.Funcs{Delete: func(
					ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption,
				) error {
					if tc.refusal != nil {
						return tc.refusal
					}
					return c.Delete(ctx, o, opts...)
				}}).Build()
			r := &kubeconfigs{hubObjects: &hubObjects{hub: hub, live: hub}}
			p, err := r.removeConnectionSecret(t.Context(), newScope(imp), observation{managed: []*unstructured.Unstructured{m}})
			if err != nil {
				t.Fatal(err)
			}
			err = hub.Get(t.Context(), client.ObjectKeyFromObject(secret), secret)
			if apierrors.IsNotFound(err) != tc.isGone {
				t.Errorf("want it gone: %t, got %v", tc.isGone, err)
			}
			if requeues := p.requeueAfter() == workload.Retry; requeues != tc.requeues {
				t.Errorf("want another pass soon: %t, got one after %s", tc.requeues, p.requeueAfter())
			}
			said := meta.FindStatusCondition(p.conditions, fleetv1alpha1.ConditionKubeconfigReady)
			if (said != nil && strings.Contains(said.Message, "cannot be deleted")) != (tc.refusal != nil) {
				t.Errorf("got the condition %v", said)
			}
		})
	}
}
