// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
)

// inVersion returns a claim, from the hub or the workload cluster, in a version.
func (f *fixture) inVersion(c client.Client, version, namespace, name string) (*unstructured.Unstructured, error) {
	u := f.NewClaim(namespace, name)
	u.SetAPIVersion(f.Group + "/" + version)
	return u, c.Get(f.Ctx, client.ObjectKeyFromObject(u), u)
}

// notSynced waits until a claim of a version says that its cluster has another one than the hub.
func (f *fixture) notSynced(version, name, inHub string) *unstructured.Unstructured {
	f.T.Helper()
	var u *unstructured.Unstructured
	f.Within("the claim says that the hub has another version", func() (err error) {
		if u, err = f.inVersion(f.Workload, version, f.Namespace, name); err != nil {
			return err
		}
		c := condition.Entry(u, fleetv1alpha1.ConditionAgentSynced)
		message, _ := c["message"].(string)
		if c["reason"] != fleetv1alpha1.ReasonKindNotOffered || c["status"] != "False" || !strings.Contains(message, fmt.Sprintf("%q", inHub)) {
			return fmt.Errorf("its condition is %v", c)
		}
		return nil
	})
	return u
}

// deletable deletes a claim of a version, and waits until it and its object in the hub are gone, and until another one
// with the deletion policy Orphan is gone and its object is released.
func (f *fixture) deletable(version, inHub, pair string) {
	f.T.Helper()
	for _, name := range []string{"db" + pair, "kept" + pair} {
		u, err := f.inVersion(f.Workload, version, f.Namespace, name)
		if err == nil {
			err = f.Workload.Delete(f.Ctx, u)
		}
		if err != nil {
			f.T.Fatal(err)
		}
		f.Within("claim "+name+" goes", func() error {
			if u, err = f.inVersion(f.Workload, version, f.Namespace, name); !apierrors.IsNotFound(err) {
				return errors.Join(fmt.Errorf("it has the condition %v", propagation.AgentSynced(u)), err)
			}
			return nil
		})
	}
	f.servedInHub(inHub)
	if u, err := f.inVersion(f.Hub, inHub, f.Target, "db"+pair); !apierrors.IsNotFound(err) {
		f.T.Errorf("want nothing to be left in the hub, got %v (%v)", u.Object, err)
	}
	u, err := f.inVersion(f.Hub, inHub, f.Target, "kept"+pair)
	if err != nil {
		f.T.Fatalf("want what is to be kept in the hub, got %v", err)
	}
	if _, named := ownership.GetSource(u); named {
		f.T.Errorf("want it released, got %v", u.GetAnnotations())
	}
}

// edit changes a claim, and the status of its object in the hub.
func (f *fixture) edit(inHub string, claim *unstructured.Unstructured) {
	f.T.Helper()
	f.Edit(f.Workload, claim, func() { _ = unstructured.SetNestedField(claim.Object, "8", "spec", "version") })
	f.Within("Crossplane sets the status", func() error {
		u, err := f.inVersion(f.Hub, inHub, f.Target, "db")
		if err != nil {
			return err
		}
		u.Object["status"] = map[string]any{"address": "of " + inHub}
		return f.Hub.Status().Update(f.Ctx, u)
	})
}

// unedited checks that nothing of edit was synchronised.
func (f *fixture) unedited(version, inHub string) {
	f.T.Helper()
	hub, err := f.inVersion(f.Hub, inHub, f.Target, "db")
	if v, _, _ := unstructured.NestedString(hub.Object, "spec", "version"); err != nil || v != "5.7" {
		f.T.Errorf("want nothing to be pushed to another version, got %q (%v)", v, err)
	}
	claim, err := f.inVersion(f.Workload, version, f.Namespace, "db")
	if a, _, _ := unstructured.NestedString(claim.Object, "status", "address"); err != nil || a != "" {
		f.T.Errorf("want nothing of another version to be shown, got %q (%v)", a, err)
	}
}

// servedInHub waits until the hub serves a version.
func (f *fixture) servedInHub(version string) {
	f.T.Helper()
	f.Within("the hub serves "+version, func() error {
		l := f.NewClaimList()
		l.SetAPIVersion(f.Group + "/" + version)
		return f.Hub.List(f.Ctx, l)
	})
}

// keptClaims creates the claims for deletable: a pair for each name.
func (f *fixture) keptClaims(pairs ...string) {
	f.T.Helper()
	for _, pair := range pairs {
		f.CreateClaim("db" + pair)
		f.CreateClaim("kept"+pair, agenttest.WithDeletionPolicy("Orphan"))
	}
	for _, pair := range pairs {
		for _, name := range []string{"db" + pair, "kept" + pair} {
			f.WaitForPushed(name)
			f.WaitForSynced(name, fleetv1alpha1.ReasonSynced)
		}
	}
}

// serve sets which versions a definition serves.
func serve(versions ...string) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		for i := range crd.Spec.Versions {
			v := &crd.Spec.Versions[i]
			v.Served = false
			for _, version := range versions {
				v.Served = v.Served || v.Name == version
			}
		}
	}
}

// TestClaimsOfAVersionThatTheHubHasLeftAreDeletable: only the hub's webhook could convert the cluster's claims, so that
// the cluster keeps their version.
func TestClaimsOfAVersionThatTheHubHasLeftAreDeletable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	steps := []struct {
		name string
		hub  func()
	}{
		{"Served", func() {}},
		{"Dropped", func() { f.EditHubVersions("v1beta1", serve("v1beta1")) }},
		{"DroppedBeforeARestart", f.restart},
		{"NotOffered", func() {
			class := &fleetv1alpha1.EnrollmentClass{}
			class.Name = f.Class
			f.Edit(f.Hub, class, func() { class.Spec.Agent.APIGroups = []string{"other.acmeco.org"} })
		}},
		{"Withdrawn", f.Withdraw},
		{"WithdrawnBeforeARestart", f.restart},
	}
	pairs := []string{""}
	for _, step := range steps {
		pairs = append(pairs, "-"+strings.ToLower(step.name))
	}
	f.keptClaims(pairs...)
	f.EditHubVersions("v1beta1", agenttest.AddVersion("v1beta1", agenttest.ConversionWebhook(t)))
	f.WaitForEvent(fleetv1alpha1.ReasonDefinitionConversion)
	f.edit("v1beta1", f.notSynced("v1alpha1", "db", "v1beta1"))
	for i, step := range steps {
		t.Log(step.name)
		step.hub()
		f.WaitForIdle()
		f.notSynced("v1alpha1", "db", "v1beta1")
		f.unedited("v1alpha1", "v1beta1")
		f.deletable("v1alpha1", "v1beta1", pairs[i+1])
	}
}

// TestClaimsAreDeletableInAClusterThatRefusesTheHubsNextVersion: Masthead may not change the definition.
func TestClaimsAreDeletableInAClusterThatRefusesTheHubsNextVersion(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	f.WorkloadUser = f.Class
	f.GrantWorkload("",
		rbacv1.PolicyRule{APIGroups: []string{apiextensionsv1.GroupName}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch", "create"}},
		rbacv1.PolicyRule{APIGroups: []string{"", "events.k8s.io", f.Group}, Resources: []string{"*"}, Verbs: []string{"*"}},
	)
	f.start()
	f.keptClaims("", "-restarted")
	f.EditHubVersions("v1beta1", func(crd *apiextensionsv1.CustomResourceDefinition) {
		agenttest.AddVersion("v1beta1", nil)(crd)
		serve("v1beta1")(crd)
	})
	f.WaitForEvent(fleetv1alpha1.ReasonDefinitionForbidden)
	f.notSynced("v1alpha1", "db", "v1beta1")
	f.deletable("v1alpha1", "v1beta1", "")
	f.restart()
	f.notSynced("v1alpha1", "db-restarted", "v1beta1")
	f.deletable("v1alpha1", "v1beta1", "-restarted")
}

// TestClaimsOfAVersionThatOnlyTheClusterHasAreDeletable: nothing corrects a definition that is not offered any more.
func TestClaimsOfAVersionThatOnlyTheClusterHasAreDeletable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.keptClaims("", "-restarted")
	f.Withdraw()
	f.WaitForSynced("db", fleetv1alpha1.ReasonKindNotOffered)
	crd := f.ClaimCRD()
	f.Edit(f.Workload, crd, func() {
		agenttest.AddVersion("v1beta1", nil)(crd)
		serve("v1beta1")(crd)
	})
	f.Within("the cluster serves the other version", func() error {
		_, err := f.inVersion(f.Workload, "v1beta1", f.Namespace, "db")
		return err
	})
	f.notSynced("v1beta1", "db", "v1alpha1")
	f.deletable("v1beta1", "v1alpha1", "")
	f.restart()
	f.notSynced("v1beta1", "db-restarted", "v1alpha1")
	f.deletable("v1beta1", "v1alpha1", "-restarted")
}

// TestClaimsOfAForeignDefinitionAreDeletableInItsVersion: a definition that is no longer Masthead's is left alone.
func TestClaimsOfAForeignDefinitionAreDeletableInItsVersion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.keptClaims("", "-restarted", "-withdrawn")
	crd := f.ClaimCRD()
	f.Edit(f.Workload, crd, func() {
		crd.Labels = nil
		agenttest.AddVersion("v1beta1", nil)(crd)
		serve("v1beta1")(crd)
	})
	f.Within("the cluster serves the other version", func() error {
		_, err := f.inVersion(f.Workload, "v1beta1", f.Namespace, "db")
		return err
	})
	f.deletable("v1beta1", "v1alpha1", "")
	f.restart()
	f.deletable("v1beta1", "v1alpha1", "-restarted")
	f.Withdraw()
	f.WaitForIdle()
	f.deletable("v1beta1", "v1alpha1", "-withdrawn")
}

// TestClaimsSayWhenTheHubServesNoVersion: nothing can be deleted in the hub then. A hub without the definition has
// nothing to delete.
func TestClaimsSayWhenTheHubServesNoVersion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, name := range []string{"db", "restarted", "stays"} {
		f.CreateClaim(name)
		f.WaitForPushed(name)
		f.WaitForSynced(name, fleetv1alpha1.ReasonSynced)
	}
	f.Withdraw()
	f.WaitForSynced("db", fleetv1alpha1.ReasonKindNotOffered)
	f.EditHubCRD(serve())
	for _, name := range []string{"db", "restarted"} {
		if name == "restarted" {
			f.restart()
		}
		if err := f.Workload.Delete(f.Ctx, f.NewClaim(f.Namespace, name)); err != nil {
			t.Fatal(err)
		}
		f.WaitForSynced(name, fleetv1alpha1.ReasonKindNotServed)
	}
	f.EditHubCRD(serve("v1alpha1"))
	f.servedInHub("v1alpha1")
	for _, name := range []string{"db", "restarted"} {
		f.WaitForGone(f.Workload, f.Namespace, name)
		f.WaitForGone(f.Hub, f.Target, name)
	}

	if err := f.Hub.Delete(f.Ctx, f.ClaimCRD()); err != nil {
		t.Fatal(err)
	}
	f.WaitForIdle()
	if claim := f.MustGetClaim("stays"); claim.GetDeletionTimestamp() != nil {
		t.Errorf("want the claim to stay when its kind goes from the hub, got %v", claim.Object)
	}
	if err := f.Workload.Delete(f.Ctx, f.NewClaim(f.Namespace, "stays")); err != nil {
		t.Fatal(err)
	}
	f.WaitForGone(f.Workload, f.Namespace, "stays")
}

// TestClaimsAreSynchronisedUntilTheHubHasTheirNextVersion: an XRD names a version before Crossplane has changed the
// definition.
func TestClaimsAreSynchronisedUntilTheHubHasTheirNextVersion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	claim := f.CreateClaim("db")
	f.WaitForPushed("db")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	next := f.ClaimCRD()
	agenttest.AddVersion("v1beta1", nil)(next)
	f.SetReferenceable(next, "v1beta1")
	f.Within("the agent has seen the XRD", func() error {
		if p, _, _ := f.agent.hub.Publication(next.Name); p.Kind.Version != "v1beta1" {
			return fmt.Errorf("it knows %v", p.Kind)
		}
		return nil
	})
	f.WaitForIdle()
	if c := propagation.AgentSynced(f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)); c["status"] != "True" {
		t.Errorf("want the claim to be synchronised still, got %v", c)
	}
	f.Edit(f.Workload, claim, func() { _ = unstructured.SetNestedField(claim.Object, "8", "spec", "version") })
	f.Within("an edit reaches the hub", func() error {
		u, err := f.GetClaim(f.Hub, f.Target, "db")
		if version, _, _ := unstructured.NestedString(u.Object, "spec", "version"); version != "8" {
			return errors.Join(fmt.Errorf("it has version %q", version), err)
		}
		return nil
	})
}
