// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/applicationtest"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/pkg/controllers/application/definition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/workload"
)

// protect has the API server refuse owner references of ConfigMaps of one name in the namespace, and waits until it
// does.
func (f *fixture) protect(name string) {
	f.T.Helper()
	meta := metav1.ObjectMeta{Name: f.Namespace}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			},
		}}},
		Validations: []admissionv1.Validation{{
			Expression: `object.metadata.name != "` + name + `" || !has(object.metadata.ownerReferences)`, Message: "It must have no owner.",
		}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: meta.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		MatchResources: &admissionv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: f.Namespace}},
		},
	}}
	f.Create(f.Workload, policy, binding)
	f.T.Cleanup(func() {
		f.Delete(f.Workload, binding)
		f.Delete(f.Workload, policy)
	})
	f.Within("the policy counts", func() error {
		cm := &corev1.ConfigMap{}
		if err := f.Workload.Get(f.Ctx, client.ObjectKey{Namespace: f.Namespace, Name: name}, cm); err != nil {
			return err
		}
		cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}}
		if err := f.Workload.Update(f.Ctx, cm, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "It must have no owner.") {
			return errors.Join(err, errors.New("it is not known yet"))
		}
		return nil
	})
}

// An object whose owners are protected by a policy cannot be owned; others can. The write is not retried again and
// again.
func TestAnObjectWhoseOwnersAPolicyProtects(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	protected, settings := f.CreateConfigMap("protected", "shop"), f.CreateConfigMap("settings", "shop")
	f.protect(protected.Name)

	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "protected", "settings"))
	f.WaitForComponent(app, "settings", "True/Healthy ")
	f.WaitForComponent(app, "protected", "True/Healthy OwnershipForbidden")
	if got := applicationtest.FormatCondition(app.Status, appsv1alpha1.ConditionComponentsWatched); got != "False OwnershipForbidden" {
		t.Errorf("got %q", got)
	}
	for _, c := range app.Status.Components {
		if c.Name == "protected" && !strings.Contains(c.Message, "It must have no owner.") {
			t.Errorf("want the message of the policy, got %q", c.Message)
		}
	}
	f.WaitForOwned(settings, app, true)
	f.WaitForIdle()
	f.WaitForOwned(protected, app, false)

	// It is tried again, by another process or after a time, and the status says the same all the while.
	before := f.Traffic.Count()
	f.restart()
	f.Within("it is tried again", func() error {
		if got := f.Traffic.Since(before, http.MethodPatch); !slices.ContainsFunc(got, func(r string) bool { return strings.HasSuffix(r, "/configmaps/protected") }) {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
	f.WaitForIdle()
	if got := f.Traffic.Since(before, controllertest.Writes()...); len(got) != 1 {
		t.Errorf("want the one attempt to be the only write, got %q", got)
	}
}

// A status that the cluster refuses, e.g. because its definition is older, keeps no object from being adopted.
func TestAStatusThatIsRefusedKeepsNothingFromBeingAdopted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Traffic.SetAnswer(func(req *http.Request) *http.Response {
		if req.Method != http.MethodPatch || !strings.HasSuffix(req.URL.Path, "/applications/shop/status") {
			return nil
		}
		body, err := req.GetBody()
		if err != nil {
			t.Error(err)
			return nil
		}
		if patch, err := io.ReadAll(body); err != nil || !strings.Contains(string(patch), `"health"`) {
			return nil
		}
		return controllertest.JSONAnswer(req, http.StatusUnprocessableEntity, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
	})
	cm := f.CreateConfigMap("settings", "shop")
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	f.WaitForOwned(cm, app, true)
}

// A definition that its owner has taken over from Masthead is left alone, with the Applications, until the owner
// returns it.
func TestADefinitionThatTurnsForeign(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	cm := f.CreateConfigMap("settings", "shop")
	f.WaitForHealth(app, appsv1alpha1.HealthHealthy)

	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: definition.Name}}
	ours := func() {
		metav1.SetMetaDataLabel(&crd.ObjectMeta, fleetv1alpha1.ManagedByLabel, fleetv1alpha1.FieldManager)
	}
	t.Cleanup(func() { f.Edit(f.Workload, crd, ours) })
	f.Edit(f.Workload, crd, func() { delete(crd.Labels, fleetv1alpha1.ManagedByLabel) })
	f.Within("the Applications are let go", func() error {
		if w, engaged := f.reconciler.workloads.Get(f.Cluster); !engaged || w.CurrentMode() != workload.ModeIdle {
			return errors.New("they are still looked after")
		}
		return nil
	})
	f.WaitForIdle()
	before := f.Traffic.Count()
	f.Delete(f.Workload, cm)
	f.WaitForIdle()
	if got := f.Traffic.Since(before, controllertest.Writes()...); len(got) > 0 {
		t.Errorf("want nothing to be written, got %q", got)
	}
	f.WaitForHealth(app, appsv1alpha1.HealthHealthy)

	f.Edit(f.Workload, crd, ours)
	f.WaitForHealth(app, appsv1alpha1.HealthMissing)
}
