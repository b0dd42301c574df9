// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/fakefleet"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/definition"
)

// closed waits until the definition in the workload cluster is being withdrawn.
func (f *fixture) closed(crd *apiextensionsv1.CustomResourceDefinition) {
	f.T.Helper()
	f.Within("the definition is closed", func() error {
		if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		if crd.Annotations[definition.WithdrawnAnnotation] == "" {
			return errors.New("it is not")
		}
		return nil
	})
}

func TestDefinitionThatTheClassDoesNotOfferGoes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.WaitForServed()
	f.editClass(func(a *fleetv1alpha1.AgentSpec) { a.APIGroups = []string{"other.acmeco.org"} })
	f.WaitForDefinitionGone()
}

// shownDefinitions records what the ClusterProfile shows of definitions.
type shownDefinitions struct {
	mu      sync.Mutex
	reasons map[string]string
}

func (s *shownDefinitions) report(_ mcr.ClusterName, crd string, wanted bool, problem *condition.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !wanted:
		delete(s.reasons, crd)
	case problem != nil:
		s.reasons[crd] = problem.Reason
	}
}

// A definition that is not offered any more, and that Masthead lacks the right to remove, does not stay without a word.
func TestDefinitionThatCannotBeRemovedIsReported(t *testing.T) {
	t.Parallel()
	definitions := func(verbs ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{
			{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: append(verbs, "get", "list", "watch", "create")},
			{APIGroups: []string{""}, Resources: []string{"namespaces", "secrets"}, Verbs: []string{"get", "list", "watch"}},
		}
	}
	for name, tc := range map[string]struct {
		reason       string
		before, then []string // The rights to write definitions.
		withClaims   bool     // The rights for claims stay.
		want         string
	}{
		"Claims": {reason: "Whether there are claims is not known.", before: []string{"update", "delete"}, then: []string{"update", "delete"}, want: fleetv1alpha1.ReasonClaimsForbidden},
		"Close":  {reason: "It cannot be closed.", before: []string{"update", "delete"}, then: []string{"delete"}, withClaims: true, want: fleetv1alpha1.ReasonDefinitionForbidden},
		"Delete": {reason: "It cannot be deleted.", before: []string{"update", "delete"}, then: []string{"update"}, withClaims: true, want: fleetv1alpha1.ReasonDefinitionForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := prepareFixture(t)
			f.WorkloadUser = f.Class
			shown := &shownDefinitions{reasons: map[string]string{}}
			f.options = func(o *Options) { o.Reporter = shown.report }
			f.GrantWorkload("-own", definitions(tc.before...)...)
			f.GrantWorkload("-claims", f.RightsForClaims()...)
			f.start()
			f.WaitForServed()
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: f.Class + "-own"}}
			f.Edit(f.Workload, role, func() { role.Rules = definitions(tc.then...) })
			if !tc.withClaims {
				if err := f.Workload.Delete(f.Ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: f.Class + "-claims"}}); err != nil {
					t.Fatal(err)
				}
			}
			f.Withdraw()
			f.Within("it is reported", func() error {
				shown.mu.Lock()
				defer shown.mu.Unlock()
				if got := shown.reasons["mysqlinstances."+f.Group]; got != tc.want {
					return fmt.Errorf("%s Want %s, got %q", tc.reason, tc.want, got)
				}
				return nil
			})
		})
	}
}

// TestClaimThatComesWhileItsDefinitionIsClosedIsNeverLost: an API server accepts a claim that the rule forbids, as one
// that has not observed the rule yet would.
func TestClaimThatComesWhileItsDefinitionIsClosedIsNeverLost(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	now := clocktesting.NewFakePassiveClock(time.Now())
	f.options = func(o *Options) { o.Clock = now }
	f.start()
	f.WaitForServed()
	f.Withdraw()
	crd := f.ClaimCRD()
	f.closed(crd)
	refused := f.NewClaim(f.Namespace, "refused")
	refused.Object["spec"] = map[string]any{"version": "8"}
	f.Within("a closed kind takes no objects", func() error {
		err := f.Workload.Create(f.Ctx, refused.DeepCopy(), client.DryRunAll)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), definition.WithdrawnMessage) {
			return errors.Join(errors.New("it was taken"), err)
		}
		return nil
	})

	// The rule is removed for a moment; the annotation stays.
	f.Edit(f.Workload, crd, func() { crd.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations = nil })
	late := refused.DeepCopy()
	late.SetName("late")
	f.Within("the late claim is created", func() error { return f.Workload.Create(f.Ctx, late) })
	f.Within("the definition is open", func() error {
		if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		if crd.Annotations[definition.WithdrawnAnnotation] != "" {
			return errors.New("it is to be removed")
		}
		return nil
	})
	now.SetTime(now.Now().Add(time.Hour))
	f.WaitForIdle()
	if _, err := f.GetClaim(f.Workload, f.Namespace, "late"); err != nil {
		t.Fatalf("want the claim to be there, got %v", err)
	}
	if err := f.Workload.Delete(f.Ctx, late); err != nil {
		t.Fatal(err)
	}
	f.closed(crd)
	now.SetTime(now.Now().Add(time.Hour))
	f.WaitForDefinitionGone()
}

// TestClosedDefinitionIsOpened when its kind is offered again, and when nothing would do so later: in a cluster that
// leaves, or is left alone from now on.
func TestClosedDefinitionIsOpened(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	f.grace = time.Hour
	f.start()
	f.WaitForServed()
	crd := f.ClaimCRD()
	mode := func(mode fleetv1alpha1.AgentMode) {
		f.editClass(func(a *fleetv1alpha1.AgentSpec) { a.Mode = mode })
	}
	opened := func(why string) {
		t.Helper()
		f.Within("claims are taken again: "+why, func() error {
			if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
				return err
			}
			if crd.Annotations[definition.WithdrawnAnnotation] != "" || len(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations) != 0 {
				return errors.New("the definition is closed")
			}
			u := f.NewClaim(f.Namespace, "db")
			u.Object["spec"] = map[string]any{"version": "8"}
			return f.Workload.Create(f.Ctx, u, client.DryRunAll)
		})
	}
	f.Withdraw()
	f.closed(crd)
	f.WaitForIdle()
	mode(fleetv1alpha1.AgentModeDisabled)
	opened("the cluster is left alone from now on")
	mode(fleetv1alpha1.AgentModeReadWrite)
	f.closed(crd)
	f.Offer()
	opened("the kind is offered again")
	f.Withdraw()
	f.closed(crd)
	f.WaitForIdle()
	fakefleet.Drain(t, f.manager.Gate, f.Cluster)
	if err := f.fleet.Offboard(f.Ctx, f.Cluster); err != nil {
		t.Error(err)
	}
	opened("the cluster leaves")
}
