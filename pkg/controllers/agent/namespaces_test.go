// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// annotateNamespace pairs a namespace of the workload cluster, as its owner does.
func (f *fixture) annotateNamespace(annotations map[string]string) {
	f.T.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace}}
	f.Edit(f.Workload, ns, func() {
		for k, v := range annotations {
			metav1.SetMetaDataAnnotation(&ns.ObjectMeta, k, v)
			if v == "" {
				delete(ns.Annotations, k)
			}
		}
	})
	// Targets follow what the agent has observed of the namespace, which a new claim does not refresh.
	f.Within("the agent has seen the annotations", func() error {
		if !f.isRunning() {
			return nil
		}
		w, ok := f.agent.workloads.Get(f.Cluster)
		if !ok {
			return nil // The agent checks later.
		}
		if state, _ := w.Watcher.State(index.NamespaceKind); state == kindwatch.StateForbidden {
			return nil
		}
		seen, err := w.Watcher.Get(index.NamespaceKind, types.NamespacedName{Name: f.Namespace})
		if err != nil {
			return err
		}
		for k, v := range annotations {
			if got := seen.GetAnnotations()[k]; got != v {
				return fmt.Errorf("%s is %q", k, got)
			}
		}
		return nil
	})
}

func (f *fixture) targetAnnotation(target string) {
	f.T.Helper()
	f.annotateNamespace(map[string]string{fleetv1alpha1.TargetNamespaceAnnotation: target})
}

// editClass changes the class.
func (f *fixture) editClass(change func(*fleetv1alpha1.AgentSpec)) {
	f.T.Helper()
	class := &fleetv1alpha1.EnrollmentClass{ObjectMeta: metav1.ObjectMeta{Name: f.Class}}
	f.Edit(f.Hub, class, func() { change(&class.Spec.Agent) })
	f.Within("the agent has seen the class", func() error {
		if !f.isRunning() {
			return nil
		}
		seen := &fleetv1alpha1.EnrollmentClass{}
		if err := f.manager.GetLocalManager().GetClient().Get(f.Ctx, client.ObjectKeyFromObject(class), seen); err != nil {
			return err
		}
		if seen.Generation < class.Generation {
			return fmt.Errorf("it has seen generation %d of %d", seen.Generation, class.Generation)
		}
		return nil
	})
}

func allowTargets(names ...string) func(*fleetv1alpha1.EnrollmentClass) {
	return func(class *fleetv1alpha1.EnrollmentClass) {
		class.Spec.Agent.AllowedTargetNamespaces = &fleetv1alpha1.AllowedNamespaces{List: names}
	}
}

func TestAuthenticatingToTheCentralClusterTargetNamespaceAnnotation(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t, func(class *fleetv1alpha1.EnrollmentClass) { allowTargets(class.Name + "-bar")(class) })
	bar := f.Class + "-bar"
	f.targetAnnotation(bar)
	other := "other-" + f.Namespace
	f.Create(f.Workload, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other}})
	f.start()

	f.CreateClaim("db")
	c := propagation.AgentSynced(f.WaitForSynced("db", fleetv1alpha1.ReasonTargetNamespaceMissing))
	if !strings.Contains(fmt.Sprint(c["message"]), fmt.Sprintf("%q does not exist", bar)) {
		t.Errorf("want the missing namespace named, got %v", c["message"])
	}
	f.MustNotExist(f.Target, "db")

	// Its creation is noticed: a periodic retry would take longer than this test waits.
	f.CreateHubNamespace(bar)
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	f.WaitForPushedTo(bar, "db")

	// A namespace without the annotation keeps the class's target.
	u := f.NewClaim(other, "db")
	u.Object["spec"] = map[string]any{"version": "8"}
	f.Create(f.Workload, u)
	f.WaitForPushed("db")
}

func TestTenancyAnnotationLeadsOnlyWhereTheClassAllows(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	treasury := f.CreateHubNamespace(f.Class + "-treasury")
	f.targetAnnotation(treasury)
	f.CreateClaim("db")
	f.WaitForSynced("db", fleetv1alpha1.ReasonTargetNamespaceNotAllowed)
	f.MustNotExist(treasury, "db")
	f.MustNotExist(f.Target, "db")

	f.targetAnnotation("kube-system")
	f.CreateClaim("system")
	f.WaitForSynced("system", fleetv1alpha1.ReasonTargetNamespaceNotAllowed)
	f.MustNotExist("kube-system", "system")

	f.targetAnnotation("../" + f.Target)
	f.CreateClaim("path")
	f.WaitForSynced("path", fleetv1alpha1.ReasonTargetNamespaceInvalid)
	f.MustNotExist(f.Target, "path")

	// A selector allows namespaces once they have its labels.
	f.editClass(func(a *fleetv1alpha1.AgentSpec) {
		a.AllowedTargetNamespaces = &fleetv1alpha1.AllowedNamespaces{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"claims-of": f.Class}},
		}
	})
	f.targetAnnotation(treasury)
	f.WaitForSynced("path", fleetv1alpha1.ReasonTargetNamespaceNotAllowed)
	f.MustNotExist(treasury, "db")
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: treasury}}
	f.Edit(f.Hub, ns, func() { ns.Labels["claims-of"] = f.Class })
	f.WaitForPushedTo(treasury, "db")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	f.Edit(f.Hub, ns, func() { delete(ns.Labels, "claims-of") })
	f.WaitForSynced("db", fleetv1alpha1.ReasonTargetNamespaceNotAllowed)

	// A claim whose target is no longer allowed can still be deleted.
	if err := f.Workload.Delete(f.Ctx, f.NewClaim(f.Namespace, "db")); err != nil {
		t.Fatal(err)
	}
	f.WaitForGone(f.Workload, f.Namespace, "db")
	f.MustNotExist(treasury, "db")
}

func TestNothingIsPushedWhileTheNamespacesAreNotKnown(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	f.WorkloadUser = f.Class
	f.Create(f.Workload, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: f.Class}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"*"}},
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"secrets", "events"}, Verbs: []string{"*"}},
		{APIGroups: []string{f.Group}, Resources: []string{"*"}, Verbs: []string{"*"}},
	}})
	f.Create(f.Workload, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.Class},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: f.Class},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: f.WorkloadUser}},
	})
	f.start()
	f.CreateClaim("db")
	c := propagation.AgentSynced(f.WaitForSynced("db", fleetv1alpha1.ReasonWorkloadForbidden))
	if !strings.Contains(fmt.Sprint(c["message"]), "list and watch namespaces") {
		t.Errorf("want the right named, got %v", c["message"])
	}
	f.MustNotExist(f.Target, "db")

	// A deletion needs no target: the object that was created for the claim is deleted wherever it is.
	left := f.NewClaim(f.Target, "db")
	marks := f.source().Annotations()
	marks[fleetv1alpha1.SourceClaimUIDAnnotation] = string(f.MustGetClaim("db").GetUID())
	left.SetAnnotations(marks)
	f.Create(f.Hub, left)
	f.inHub(left)
	f.Within("the claim bears the finalizer", func() error {
		claim, err := f.GetClaim(f.Workload, f.Namespace, "db")
		if err != nil {
			return err
		}
		claim.SetFinalizers([]string{agenttest.OurFinalizer})
		return f.Workload.Update(f.Ctx, claim)
	})
	if err := f.Workload.Delete(f.Ctx, f.NewClaim(f.Namespace, "db")); err != nil {
		t.Fatal(err)
	}
	f.WaitForGone(f.Workload, f.Namespace, "db")
	f.Within("its object is gone from the hub", func() error {
		err := f.Hub.Get(f.Ctx, client.ObjectKeyFromObject(left), left)
		if !apierrors.IsNotFound(err) {
			return errors.Join(err, errors.New("it is there"))
		}
		return nil
	})
}

func TestRecreates(t *testing.T) {
	on := func(v string) map[string]string { return map[string]string{fleetv1alpha1.OnTargetChangeAnnotation: v} }
	for name, tc := range map[string]struct {
		reason           string
		claim, namespace map[string]string
		want             bool
	}{
		"Nothing":       {reason: "A claim moves only on request."},
		"Claim":         {reason: "The claim asks for it.", claim: on("Recreate"), want: true},
		"Namespace":     {reason: "Its namespace asks for it.", namespace: on("Recreate"), want: true},
		"ClaimStays":    {reason: "The claim knows better than its namespace.", claim: on("Stay"), namespace: on("Recreate")},
		"ClaimEmpty":    {reason: "A mistake is no consent.", claim: on(""), namespace: on("Recreate")},
		"Misspelt":      {reason: "Nor is this.", claim: on("recreate")},
		"ClaimOverStay": {reason: "The claim knows better either way.", claim: on("Recreate"), namespace: on("Stay"), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plan.Recreates(&metav1.ObjectMeta{Annotations: tc.claim}, tc.namespace); got != tc.want {
				t.Errorf("%s want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

func TestClaimThatAsksToMoveIsRecreatedWhereItCanBe(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t, func(class *fleetv1alpha1.EnrollmentClass) {
		allowTargets(class.Name+"-bar", class.Name+"-missing")(class)
	})
	bar := f.CreateHubNamespace(f.Class + "-bar")
	f.start()
	f.CreateClaim("db")
	before := f.WaitForPushed("db")
	f.CreateClaim("taken")
	f.WaitForPushed("taken")
	theirs := f.NewClaim(bar, "taken")
	f.Create(f.Hub, theirs)

	// An object that cannot be created at the new place stays at the old one.
	f.annotateNamespace(map[string]string{
		fleetv1alpha1.OnTargetChangeAnnotation: "Recreate", fleetv1alpha1.TargetNamespaceAnnotation: f.Class + "-missing",
	})
	f.WaitForSynced("db", fleetv1alpha1.ReasonTargetNamespaceMissing)
	if now := f.WaitForPushed("db"); now.GetUID() != before.GetUID() || now.GetDeletionTimestamp() != nil {
		t.Fatalf("want the object to stay, got %v", now.Object)
	}

	// A finalizer holds the object at the old place: it exists once, never twice.
	f.Edit(f.Hub, before, func() { before.SetFinalizers([]string{"example.org/hold"}) })
	f.targetAnnotation(bar)
	f.WaitForSynced("db", fleetv1alpha1.ReasonMoving)
	f.WaitForSynced("taken", fleetv1alpha1.ReasonConflict)
	f.MustNotExist(bar, "db")
	f.Edit(f.Hub, before, func() { before.SetFinalizers(nil) })
	f.WaitForPushedTo(bar, "db")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	f.MustNotExist(f.Target, "db")
	f.WaitForPushed("taken")

	// Where the class retains its claims' objects, the old object is released.
	f.editClass(func(a *fleetv1alpha1.AgentSpec) { a.DeletionPolicy = fleetv1alpha1.DeletionPolicyOrphan })
	f.targetAnnotation("")
	f.WaitForPushed("db")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	kept, err := f.GetClaim(f.Hub, bar, "db")
	if err != nil {
		t.Fatal(err)
	}
	if _, named := ownership.GetSource(kept); named || kept.GetAnnotations()[fleetv1alpha1.ReleasedFromAnnotation] == "" {
		t.Errorf("want the old object released, got %v", kept.GetAnnotations())
	}
}
