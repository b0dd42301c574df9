// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
)

// Fixture is a hub and a workload cluster with the objects of one test. It acts as their users and as the hub's
// Crossplane. A test of the agent runs one between them.
type Fixture struct {
	controllertest.Case

	Hub, Workload                 client.Client
	HubRequests, WorkloadRequests *Requests

	// Number distinguishes the objects of this test from those of earlier tests in the same API servers.
	Number                   int32
	Cluster                  mcr.ClusterName
	Identifier, Class        string
	Group, Target, Namespace string

	// WorkloadUser and HubUser are whom the agent impersonates, if they are not empty.
	WorkloadUser, HubUser string

	// WorkloadConfig is for the workload cluster, and HubConfig is the manager's for the hub.
	WorkloadConfig, HubConfig *rest.Config

	// Owner is the hub as the owner of objects in the cluster.
	Owner hubidentity.Owner
}

var fixtures atomic.Int32 //nolint:gochecknoglobals // Numbers the fixtures.

// New returns a fixture whose claims go to one target namespace. The claim kind is published in the hub; options change
// the class before it is created.
func New(
	t *testing.T, patience time.Duration, hub, workload *rest.Config, options ...func(*fleetv1alpha1.EnrollmentClass),
) Fixture {
	t.Helper()
	n := fixtures.Add(1)
	f := Fixture{
		Case:        controllertest.Case{T: t, Ctx: t.Context(), Patience: patience},
		Hub:         controllertest.NewClient(t, hub, controllertest.Scheme()),
		Workload:    controllertest.NewClient(t, workload, controllertest.Scheme()),
		HubRequests: NewRequests(n), WorkloadRequests: NewRequests(n),
		Number:         n,
		Cluster:        mcr.ClusterName(fmt.Sprintf("capi/fleet/w%d", n)),
		Identifier:     fmt.Sprintf("identifier-%d", n),
		Class:          fmt.Sprintf("class-%d", n),
		Group:          fmt.Sprintf("db%d.acmeco.org", n),
		Target:         fmt.Sprintf("target-%d", n),
		Namespace:      fmt.Sprintf("team-%d", n),
		HubConfig:      hub,
		WorkloadConfig: workload,
		Owner:          hubidentity.Owner{ID: OurHub},
	}
	f.Create(f.Hub, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.Target}})
	f.Create(f.Workload, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace}})
	class := &fleetv1alpha1.EnrollmentClass{
		ObjectMeta: metav1.ObjectMeta{Name: f.Class},
		Spec: fleetv1alpha1.EnrollmentClassSpec{Agent: fleetv1alpha1.AgentSpec{
			Mode: fleetv1alpha1.AgentModeReadWrite, APIGroups: []string{f.Group}, DefaultTargetNamespace: f.Target,
		}},
	}
	for _, o := range options {
		o(class)
	}
	f.Create(f.Hub, class)
	f.Publish()
	return f
}

// ClaimRule matches the claims in an admission policy.
func (f *Fixture) ClaimRule() admissionv1.Rule {
	return admissionv1.Rule{APIGroups: []string{f.Group}, APIVersions: []string{"*"}, Resources: []string{"mysqlinstances"}}
}

// Refuse creates an admission policy, and waits until it refuses what probe tries.
func (f *Fixture) Refuse(
	in client.Client, namespaces *metav1.LabelSelector, rule admissionv1.RuleWithOperations, validation admissionv1.Validation,
	probe func() error,
) {
	f.T.Helper()
	f.Create(in, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: f.Class},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: namespaces, ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: rule}},
			},
			Validations: []admissionv1.Validation{validation},
		},
	})
	f.Create(in, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.Class},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: f.Class, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	})
	f.Within("the policy is in force", func() error {
		if probe() == nil {
			return errors.New("it is not")
		}
		return nil
	})
}

// LimitInHub creates a policy in the hub that is not part of the definition.
func (f *Fixture) LimitInHub(storageGB int64) {
	f.T.Helper()
	rule := admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}, Rule: f.ClaimRule(),
	}
	validation := admissionv1.Validation{
		Expression: fmt.Sprintf("object.spec.storageGB <= %d", storageGB), Message: "too large for the hub",
	}
	f.Refuse(f.Hub, nil, rule, validation, func() error {
		u := f.NewClaim(f.Target, "probe")
		u.Object["spec"] = map[string]any{"storageGB": storageGB + 1}
		return f.Hub.Create(f.Ctx, u, client.DryRunAll)
	})
}

// WaitForEvent waits for an event with a reason on the enrolled object, and returns its message.
func (f *Fixture) WaitForEvent(reason string) string {
	f.T.Helper()
	return f.Case.WaitForEvent(f.Hub, f.Class, reason)
}

// GrantWorkload gives the user whose rights are used in the workload cluster some more.
func (f *Fixture) GrantWorkload(name string, rules ...rbacv1.PolicyRule) {
	f.T.Helper()
	f.Create(f.Workload, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: f.Class + name}, Rules: rules})
	f.Create(f.Workload, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.Class + name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: f.Class + name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: f.WorkloadUser}},
	})
}

// RightsForClaims are those that claims need in the workload cluster.
func (f *Fixture) RightsForClaims() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{f.Group}, Resources: []string{"mysqlinstances"}, Verbs: []string{"get", "list", "watch", "patch"}},
		{APIGroups: []string{f.Group}, Resources: []string{"mysqlinstances/status"}, Verbs: []string{"patch"}},
	}
}

// KubeSystemUID distinguishes the tests' workload clusters, as the UIDs of their kube-system namespaces do.
func (f *Fixture) KubeSystemUID() string { return "kube-system of " + f.WorkloadConfig.Host }

// WaitForIdle waits until the agent sends no more requests.
func (f *Fixture) WaitForIdle() {
	f.T.Helper()
	f.AtRest(25, func() (seen, unanswered int) {
		return len(f.HubRequests.Filter()) + len(f.WorkloadRequests.Filter()),
			int(f.HubRequests.unanswered.Load() + f.WorkloadRequests.unanswered.Load())
	})
}

// CreateHubNamespace creates a namespace in the hub.
func (f *Fixture) CreateHubNamespace(name string) string {
	f.T.Helper()
	f.Create(f.Hub, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return name
}
