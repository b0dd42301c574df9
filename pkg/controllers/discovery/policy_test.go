// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/discoverytest"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/install"
)

// rejects waits until the cluster rejects something for the reason that Masthead gives. The API server puts a new
// policy into effect after a moment.
func (f *fixture) rejects(what string, try func() error) {
	f.T.Helper()
	f.Within("the cluster rejects "+what, func() error {
		err := try()
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "Masthead keeps this as it is in the hub") {
			return nil
		}
		return fmt.Errorf("it answers: %w", errors.Join(err, errors.New("not rejected")))
	})
}

func TestPolicyRejectsWhatIsNotMastheads(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	xrd := f.CreateXRD("mysqlinstances")
	// A copy from before the definition got its status is written once more, so that an edit of it would be a conflict.
	copied := f.WaitForCopy(xrd, discoverytest.SameContent(xrd))
	f.gaugeIs(1, "masthead_discovery_protected", string(f.Cluster))
	masthead := f.ClientAsMasthead()
	ours := map[string]string{fleetv1alpha1.ManagedByLabel: install.LabelValue}
	claims := f.NewClaimCRD("claims", ours)
	f.Create(masthead, claims)
	t.Cleanup(func() { f.Delete(masthead, claims) })

	dryRun := client.DryRunAll
	f.rejects("an edit of a copy", func() error {
		u := copied.DeepCopy()
		u.Object["spec"].(map[string]any)["connectionSecretKeys"] = []any{"forged"}
		return f.Workload.Update(f.Ctx, u, dryRun)
	})
	f.rejects("an edit of its labels", func() error {
		u := copied.DeepCopy()
		u.SetLabels(nil)
		return f.Workload.Update(f.Ctx, u, dryRun)
	})
	f.rejects("its deletion", func() error { return f.Workload.Delete(f.Ctx, copied, dryRun) })
	f.rejects("the deletion of all", func() error { return f.Workload.DeleteAllOf(f.Ctx, copied, dryRun) })
	f.rejects("a forged copy", func() error {
		u := discoverytest.NewObject(discoverytest.XRDKind, "forged."+f.Group)
		u.SetLabels(ours)
		u.Object["spec"] = copied.Object["spec"]
		return f.Workload.Create(f.Ctx, u, dryRun)
	})
	for _, name := range []string{discoverytest.XRDCRD, claims.Name} {
		f.rejects("the deletion of the definition "+name, func() error {
			return f.Workload.Delete(f.Ctx, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}, dryRun)
		})
		f.rejects("an edit of the definition "+name, func() error {
			// The API server may be writing its status, which makes an edit of an older one a conflict.
			edited, err := f.GetCRD(f.Workload, name)
			if err != nil {
				return err
			}
			edited.Spec.Names.ShortNames = []string{"hijacked"}
			return f.Workload.Update(f.Ctx, edited, dryRun)
		})
	}

	t.Log("what is not Masthead's is not its business")
	foreign := f.NewClaimCRD("foreign", nil)
	f.Create(f.Workload, foreign)
	f.Edit(f.Workload, foreign, func() { foreign.Spec.Names.ShortNames = []string{"mine"} })
	f.Edit(f.Workload, foreign, func() { foreign.Labels = ours })
	f.rejects("an edit of what was handed over", func() error { return f.Workload.Delete(f.Ctx, foreign, dryRun) })
	f.Delete(masthead, foreign)
	theirs := discoverytest.NewObject(discoverytest.CompositionKind, "theirs."+f.Group)
	theirs.Object["spec"] = map[string]any{
		"compositeTypeRef": map[string]any{"apiVersion": "theirs.org/v1", "kind": "Theirs"}, "mode": "Pipeline",
		"pipeline": []any{map[string]any{"step": "compose", "functionRef": map[string]any{"name": "theirs"}}},
	}
	f.Within("users can have Compositions of their own", func() error { return f.Workload.Create(f.Ctx, theirs) })
	f.Delete(f.Workload, theirs)

	t.Log("the API server itself keeps the status of definitions")
	f.Within("a definition that Masthead wrote is established", func() error {
		crd, err := f.GetCRD(f.Workload, claims.Name)
		if err != nil {
			return err
		}
		for _, c := range crd.Status.Conditions {
			if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
				return nil
			}
		}
		return errors.New("it is not")
	})

	t.Log("the policy comes back")
	for _, obj := range []client.Object{
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policyName}},
		&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: policyName}},
	} {
		f.Delete(f.Workload, obj)
		f.Within("it is put back", func() error { return f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(obj), obj) })
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policyName}}
	f.Edit(f.Workload, binding, func() { binding.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Audit} })
	f.Within("an edit of it is put back", func() error {
		if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(binding), binding); err != nil {
			return err
		}
		if binding.Spec.ValidationActions[0] != admissionv1.Deny {
			return errors.New("it is not")
		}
		return nil
	})
	f.rejects("the deletion of a copy", func() error { return f.Workload.Delete(f.Ctx, copied, dryRun) })
}

// Credentials can be rotated to those of another user, while the connection stays.
func TestPolicyFollowsMastheadsUser(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	composition := f.CreateComposition("aws", "mysqlinstances")
	copied := f.WaitForCopy(composition, nil)
	f.rejects("a deletion", func() error { return f.Workload.Delete(f.Ctx, copied, client.DryRunAll) })

	f.Traffic.SetUser("another-user")
	f.Edit(f.Hub, composition, func() {
		_ = unstructured.SetNestedField(composition.Object, "mine", "spec", "writeConnectionSecretsToNamespace")
	})
	f.WaitForCopy(composition, discoverytest.SameContent(composition))
	policy := &admissionv1.ValidatingAdmissionPolicy{}
	if err := f.Workload.Get(f.Ctx, client.ObjectKey{Name: policyName}, policy); err != nil || !strings.Contains(policy.Spec.Validations[0].Expression, "another-user") {
		t.Errorf("want a policy that lets the other user through, got %v (%v)", policy.Spec.Validations, err)
	}

	t.Log("the fleet tells of other credentials before anything is refused")
	f.Traffic.SetUser("third-user")
	c, _ := f.fleet.Lookup(f.Cluster)
	c.Enrolment.CredentialsVersion = "next"
	f.fleet.Set(c)
	f.Within("the policy lets the third user through", func() error {
		if err := f.Workload.Get(f.Ctx, client.ObjectKey{Name: policyName}, policy); err != nil {
			return err
		}
		if !strings.Contains(policy.Spec.Validations[0].Expression, "third-user") {
			return errors.New("it does not")
		}
		return nil
	})
}

func TestClusterWithoutPoliciesIsNotProtectedAndStillShows(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	f.Traffic.SetAnswer(func(req *http.Request) *http.Response {
		if strings.Contains(req.URL.Path, "/validatingadmissionpolic") {
			return controllertest.JSONAnswer(req, http.StatusNotFound, "404 page not found")
		}
		return nil
	})
	f.start()
	f.WaitForCopy(f.CreateComposition("aws", "mysqlinstances"), nil)
	f.gaugeIs(0, "masthead_discovery_protected", string(f.Cluster))
	f.WaitForEvent(fleetv1alpha1.ReasonPolicyNotServed)
}

func TestClusterThatDoesNotSayWhoMastheadIs(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		code   int
		body   string
	}{
		"NotServed": {"A cluster without this API cannot report the username.", http.StatusNotFound, "404 page not found"},
		"Anonymous": {
			"A policy that lets everybody through is none.", http.StatusCreated,
			`{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","metadata":{},"status":{"userInfo":{"username":"system:anonymous"}}}`,
		},
		"Lies": {
			"What a cluster says is not trusted.", http.StatusCreated,
			`{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","metadata":{},"status":{"userInfo":["x"]}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := prepareFixture(t)
			f.Traffic.SetAnswer(func(req *http.Request) *http.Response {
				if strings.HasSuffix(req.URL.Path, "/selfsubjectreviews") {
					return controllertest.JSONAnswer(req, tc.code, tc.body)
				}
				return nil
			})
			f.start()
			f.WaitForEvent(fleetv1alpha1.ReasonUserUnknown)
			f.WaitForCopy(f.CreateComposition("aws", "mysqlinstances"), nil)
			f.gaugeIs(0, "masthead_discovery_protected", string(f.Cluster))
			policy := &admissionv1.ValidatingAdmissionPolicy{}
			if err := f.Workload.Get(f.Ctx, client.ObjectKey{Name: policyName}, policy); !apierrors.IsNotFound(err) {
				t.Errorf("%s: want no policy, got %v (%v)", tc.reason, policy.Spec, err)
			}
		})
	}
}

func TestForeignPolicyIsLeftAlone(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	foreign := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{"theirs.org"}, APIVersions: []string{"*"}, Resources: []string{"theirs"}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "true"}},
		},
	}
	f.Create(f.Workload, foreign)
	f.start()
	f.WaitForEvent(fleetv1alpha1.ReasonPolicyForeign)
	f.gaugeIs(0, "masthead_discovery_protected", string(f.Cluster))
	got := &admissionv1.ValidatingAdmissionPolicy{}
	if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(foreign), got); err != nil || got.Generation != foreign.Generation {
		t.Errorf("want it as it was, got %v (%v)", got, err)
	}
	f.Delete(f.Workload, foreign)
	f.gaugeIs(1, "masthead_discovery_protected", string(f.Cluster))
}

// The rights that config/workload grants are sufficient. If some of them are missing, it is reported which.
func TestRightsInTheWorkloadCluster(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	f.User, f.UserGroups = "masthead-least-rights", []string{"system:authenticated"}
	data, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "workload", "role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{}
	if err := yaml.Unmarshal(data, role); err != nil {
		t.Fatal(err)
	}
	rules := role.Rules
	role.Rules = slices.DeleteFunc(slices.Clone(rules), func(r rbacv1.PolicyRule) bool {
		return r.APIGroups[0] == "admissionregistration.k8s.io" || r.APIGroups[0] == crossplaneGroup
	})
	f.Create(f.Workload, role)
	t.Cleanup(func() { f.Delete(f.Workload, role) })
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: f.User}},
	}
	f.Create(f.Workload, binding)
	t.Cleanup(func() { f.Delete(f.Workload, binding) })
	f.start()
	xrd, composition := f.CreateXRD("mysqlinstances"), f.CreateComposition("aws", "mysqlinstances")
	f.WaitForEvent(fleetv1alpha1.ReasonPolicyForbidden)
	f.WaitForEvent(fleetv1alpha1.ReasonObjectsForbidden)
	f.reported(discoverytest.CompositionCRD, fleetv1alpha1.ReasonObjectsForbidden)
	f.gaugeIs(0, "masthead_discovery_protected", string(f.Cluster))

	f.Edit(f.Workload, role, func() { role.Rules = rules })
	f.WaitForCopy(xrd, nil)
	copied := f.WaitForCopy(composition, nil)
	f.gaugeIs(1, "masthead_discovery_protected", string(f.Cluster))
	f.rejects("an administrator's deletion", func() error { return f.Workload.Delete(f.Ctx, copied, client.DryRunAll) })
	f.Edit(f.Hub, composition, func() {
		_ = unstructured.SetNestedField(composition.Object, "mine", "spec", "writeConnectionSecretsToNamespace")
	})
	f.WaitForCopy(composition, discoverytest.SameContent(composition))
	f.Delete(f.Hub, composition)
	f.WaitForGone(composition)
}
