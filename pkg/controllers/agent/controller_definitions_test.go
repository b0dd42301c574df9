// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

func TestDefinitionIsPulledAndDriftPutBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.served()
	hub, got := f.crd(), f.crd()
	if err := f.hub.Get(f.Ctx, client.ObjectKeyFromObject(hub), hub); err != nil {
		t.Fatal(err)
	}
	if err := f.workload.Get(f.Ctx, client.ObjectKeyFromObject(got), got); err != nil {
		t.Fatal(err)
	}
	want := asPulled(t, hub).Spec
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Errorf("want the hub's spec (-want +got):\n%s", diff)
	}
	if len(got.OwnerReferences) != 0 || len(got.Annotations) != 0 {
		t.Errorf("want nothing of the hub's metadata, got %v %v", got.OwnerReferences, got.Annotations)
	}
	if diff := cmp.Diff(f.owner.Stamp(nil), got.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	f.settled()

	f.Edit(f.workload, got, func() {
		got.Spec.Names.ShortNames = []string{"hijacked"}
		got.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["extra"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	})
	f.Within("drift is put back", func() error {
		if err := f.workload.Get(f.Ctx, client.ObjectKeyFromObject(got), got); err != nil {
			return err
		}
		if diff := cmp.Diff(want, got.Spec); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})

	f.Edit(f.hub, hub, func() {
		hub.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["engine"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	})
	f.Within("a change in the hub follows", func() error {
		if err := f.workload.Get(f.Ctx, client.ObjectKeyFromObject(got), got); err != nil {
			return err
		}
		if _, ok := got.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["engine"]; !ok {
			return errors.New("the new field is not there")
		}
		return nil
	})
	f.settled()
	before := len(f.workloadRequests.writes())
	f.settled()
	if after := len(f.workloadRequests.writes()); after != before {
		t.Errorf("want no more writes, got %d", after-before)
	}
}

func TestForeignDefinitionIsLeftAlone(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	foreign := f.crd()
	foreign.OwnerReferences, foreign.Annotations = nil, nil
	foreign.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["theirs"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	f.Create(f.workload, foreign)
	f.start()
	f.Within("an event on the enrolled object tells", func() error {
		l := &eventsv1.EventList{}
		if err := f.hub.List(f.Ctx, l); err != nil {
			return err
		}
		for _, e := range l.Items {
			if e.Reason == fleetv1alpha1.ReasonDefinitionForeign && e.Regarding.Name == f.class {
				return nil
			}
		}
		return errors.New("there is none")
	})
	f.claim("db")
	f.settled()
	if _, err := f.get(f.hub, f.target, "db"); err == nil {
		t.Error("want claims of a foreign definition not to be pushed")
	}
	if u, err := f.get(f.workload, f.namespace, "db"); err != nil || len(u.GetFinalizers()) != 0 || u.Object["status"] != nil {
		t.Errorf("want claims of a foreign definition untouched, got %v (%v)", u.Object, err)
	}
	got := &apiextensionsv1.CustomResourceDefinition{}
	if err := f.workload.Get(f.Ctx, client.ObjectKeyFromObject(foreign), got); err != nil || got.Generation != foreign.Generation || len(got.Labels) != 0 {
		t.Errorf("want the definition as it was, got %v (%v)", got.ObjectMeta, err)
	}
}

// TestDefinitionWhoseNamesAreTakenIsReported: an API server accepts a definition but never serves its kind.
func TestDefinitionWhoseNamesAreTakenIsReported(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	taken := f.crd()
	taken.Name, taken.Spec.Names.Plural, taken.Spec.Names.Singular = "others."+f.group, "others", "other"
	taken.OwnerReferences, taken.Annotations = nil, nil
	f.Create(f.workload, taken)
	f.Within("the names are taken", func() error { return f.workload.List(f.Ctx, f.list()) })
	f.start()
	f.prunedStatus(fleetv1alpha1.ReasonDefinitionNotServed)
	if err := f.workload.Delete(f.Ctx, taken); err != nil {
		t.Fatal(err)
	}
	// Which kind a client resolves depends on when discovery drops the other definition. The watch does not use discovery.
	f.Within("the kind is synchronised when the names are free", func() error {
		w, ok := f.agent.workloads.Get(f.cluster)
		if !ok {
			return errors.New("the cluster is not engaged")
		}
		kind, _ := w.KindFor(f.crd().Name)
		if state, why := w.Watcher.State(kind); state != kindwatch.StateSynced {
			return fmt.Errorf("it is %s: %s", state, why)
		}
		return nil
	})
}

func TestWithdrawnKindKeepsItsDefinitionWhileItHasClaims(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	claim := f.claim("db")
	f.pushed("db")
	f.synced("db", fleetv1alpha1.ReasonSynced)

	xrd := &unstructured.Unstructured{}
	xrd.SetGroupVersionKind(crossplane.XRDKind.GroupVersionKind)
	xrd.SetName(f.xrdName())
	if err := f.hub.Delete(f.Ctx, xrd); err != nil {
		t.Fatal(err)
	}
	f.synced("db", fleetv1alpha1.ReasonKindNotOffered)
	// Even an agent that never saw the kind published.
	f.restart()
	if err := f.workload.Delete(f.Ctx, claim); err != nil {
		t.Fatal(err)
	}
	f.gone(f.workload, f.namespace, "db")
	f.gone(f.hub, f.target, "db")
	f.definitionGone()
	// A kind that is published again is offered as before.
	f.offer()
	f.claim("again")
	f.pushed("again")
}

// grantWorkload gives the user whose rights are used in the workload cluster some more.
func (f *fixture) grantWorkload(name string, rules ...rbacv1.PolicyRule) {
	f.T.Helper()
	f.Create(f.workload, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: f.class + name}, Rules: rules})
	f.Create(f.workload, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.class + name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: f.class + name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: f.workloadUser}},
	})
}

// rightsForClaims are those that claims need in the workload cluster.
func (f *fixture) rightsForClaims() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{f.group}, Resources: []string{"mysqlinstances"}, Verbs: []string{"get", "list", "watch", "patch"}},
		{APIGroups: []string{f.group}, Resources: []string{"mysqlinstances/status"}, Verbs: []string{"patch"}},
	}
}

func TestMissingRightsInTheWorkloadClusterAreReported(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	f.workloadUser = f.class
	f.grantWorkload("-own",
		rbacv1.PolicyRule{
			APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"},
			Verbs: []string{"get", "list", "watch", "create", "update"},
		},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch", "create", "update"}},
		rbacv1.PolicyRule{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}},
	)
	f.start()
	f.Within("an event on the enrolled object tells", func() error {
		l := &eventsv1.EventList{}
		if err := f.hub.List(f.Ctx, l); err != nil {
			return err
		}
		for _, e := range l.Items {
			if e.Reason == fleetv1alpha1.ReasonClaimsForbidden && e.Regarding.Name == f.class {
				return nil
			}
		}
		return errors.New("there is none")
	})
	f.grantWorkload("-claims", f.rightsForClaims()...)
	// These rights suffice.
	claim := f.claim("db", withSecret("db-conn"))
	hub := f.pushed("db")
	f.connectionSecret("db-conn", hub, "one")
	f.ready("db", "a")
	f.synced("db", fleetv1alpha1.ReasonSynced)
	f.Within("the Secret arrives", func() error {
		return f.workload.Get(f.Ctx, client.ObjectKey{Namespace: f.namespace, Name: "db-conn"}, &corev1.Secret{})
	})
	if err := f.workload.Delete(f.Ctx, claim); err != nil {
		t.Fatal(err)
	}
	f.gone(f.workload, f.namespace, "db")
}

// TestNothingIsLeftOfClustersThatCameAndWent engages and disengages a cluster many times.
func TestNothingIsLeftOfClustersThatCameAndWent(t *testing.T) {
	f := newFixture(t)
	f.claim("db")
	f.pushed("db")
	f.synced("db", fleetv1alpha1.ReasonSynced)
	f.settled()
	engaged, ok := f.agent.workloads.Get(f.cluster)
	if !ok {
		t.Fatal("the cluster is not engaged")
	}
	kinds := len(engaged.ClaimKinds())
	round := func() {
		f.disengageCluster()
		f.Within("the cluster is disengaged", func() error {
			if _, ok := f.agent.workloads.Get(f.cluster); ok {
				return errors.New("it is not")
			}
			return nil
		})
		f.engage()
		f.Within("the cluster's claims are watched", func() error {
			w, ok := f.agent.workloads.Get(f.cluster)
			if !ok {
				return errors.New("it is not engaged")
			}
			kind, ok := w.KindFor("mysqlinstances." + f.group)
			if state, _ := w.Watcher.State(kind); !ok || state != kindwatch.StateSynced {
				return fmt.Errorf("state is %s", state)
			}
			// Including those with claims left by other tests.
			if n := len(w.ClaimKinds()); n < kinds {
				return fmt.Errorf("%d kinds of %d are followed", n, kinds)
			}
			return w.Watcher.WaitForSync(f.Ctx)
		})
	}
	round()
	f.settled()
	before := runtime.NumGoroutine()
	for range 20 {
		round()
	}
	f.settled()
	f.Within("the goroutines are gone", func() error {
		// Less than one per round: idle connections vary.
		if after := runtime.NumGoroutine(); after > before+15 {
			return fmt.Errorf("there were %d, there are %d", before, after)
		}
		return nil
	})
	f.synced("db", fleetv1alpha1.ReasonSynced)

	series := func() int {
		families, err := f.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, family := range families {
			for _, m := range family.GetMetric() {
				if len(m.GetLabel()) > 0 { // One without is not about a cluster.
					n++
				}
			}
		}
		return n
	}
	if series() == 0 {
		t.Fatal("want metrics while the cluster is engaged")
	}
	f.disengageCluster()
	f.Within("the series are deleted", func() error {
		if n := series(); n != 0 {
			return fmt.Errorf("%d are left", n)
		}
		return nil
	})
}
