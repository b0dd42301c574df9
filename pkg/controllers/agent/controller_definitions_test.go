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
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

func TestDefinitionIsPulledAndDriftPutBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.WaitForServed()
	hub, got := f.ClaimCRD(), f.ClaimCRD()
	if err := f.Hub.Get(f.Ctx, client.ObjectKeyFromObject(hub), hub); err != nil {
		t.Fatal(err)
	}
	if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(got), got); err != nil {
		t.Fatal(err)
	}
	want := asPulled(t, hub).Spec
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Errorf("want the hub's spec (-want +got):\n%s", diff)
	}
	if len(got.OwnerReferences) != 0 || len(got.Annotations) != 0 {
		t.Errorf("want nothing of the hub's metadata, got %v %v", got.OwnerReferences, got.Annotations)
	}
	if diff := cmp.Diff(f.Owner.Stamp(nil), got.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	f.WaitForIdle()

	f.Edit(f.Workload, got, func() {
		got.Spec.Names.ShortNames = []string{"hijacked"}
		got.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["extra"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	})
	f.Within("drift is put back", func() error {
		if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(got), got); err != nil {
			return err
		}
		if diff := cmp.Diff(want, got.Spec); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})

	f.Edit(f.Hub, hub, func() {
		hub.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["engine"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	})
	f.Within("a change in the hub follows", func() error {
		if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(got), got); err != nil {
			return err
		}
		if _, ok := got.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["engine"]; !ok {
			return errors.New("the new field is not there")
		}
		return nil
	})
	f.WaitForIdle()
	before := len(f.WorkloadRequests.Writes())
	f.WaitForIdle()
	if after := len(f.WorkloadRequests.Writes()); after != before {
		t.Errorf("want no more writes, got %d", after-before)
	}
}

func TestForeignDefinitionIsLeftAlone(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	foreign := f.ClaimCRD()
	foreign.OwnerReferences, foreign.Annotations = nil, nil
	foreign.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["theirs"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	f.Create(f.Workload, foreign)
	f.start()
	f.WaitForEvent(fleetv1alpha1.ReasonDefinitionForeign)
	f.CreateClaim("db")
	f.WaitForIdle()
	if _, err := f.GetClaim(f.Hub, f.Target, "db"); err == nil {
		t.Error("want claims of a foreign definition not to be pushed")
	}
	if u, err := f.GetClaim(f.Workload, f.Namespace, "db"); err != nil || len(u.GetFinalizers()) != 0 || u.Object["status"] != nil {
		t.Errorf("want claims of a foreign definition untouched, got %v (%v)", u.Object, err)
	}
	got := &apiextensionsv1.CustomResourceDefinition{}
	if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(foreign), got); err != nil || got.Generation != foreign.Generation || len(got.Labels) != 0 {
		t.Errorf("want the definition as it was, got %v (%v)", got.ObjectMeta, err)
	}
}

// TestDefinitionWhoseNamesAreTakenIsReported: an API server accepts a definition but never serves its kind.
func TestDefinitionWhoseNamesAreTakenIsReported(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	taken := f.ClaimCRD()
	taken.Name, taken.Spec.Names.Plural, taken.Spec.Names.Singular = "others."+f.Group, "others", "other"
	taken.OwnerReferences, taken.Annotations = nil, nil
	f.Create(f.Workload, taken)
	f.Within("the names are taken", func() error { return f.Workload.List(f.Ctx, f.NewClaimList()) })
	f.start()
	f.WaitForEvent(fleetv1alpha1.ReasonDefinitionNotServed)
	if err := f.Workload.Delete(f.Ctx, taken); err != nil {
		t.Fatal(err)
	}
	// Which kind a client resolves depends on when discovery drops the other definition. The watch does not use discovery.
	f.Within("the kind is synchronised when the names are free", func() error {
		w, ok := f.agent.workloads.Get(f.Cluster)
		if !ok {
			return errors.New("the cluster is not engaged")
		}
		kind, _ := w.KindFor(f.ClaimCRD().Name)
		if state, why := w.Watcher.State(kind); state != kindwatch.StateSynced {
			return fmt.Errorf("it is %s: %s", state, why)
		}
		return nil
	})
}

func TestWithdrawnKindKeepsItsDefinitionWhileItHasClaims(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	claim := f.CreateClaim("db")
	f.WaitForPushed("db")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)

	xrd := &unstructured.Unstructured{}
	xrd.SetGroupVersionKind(crossplane.XRDKind.GroupVersionKind)
	xrd.SetName(f.XRDName())
	if err := f.Hub.Delete(f.Ctx, xrd); err != nil {
		t.Fatal(err)
	}
	f.WaitForSynced("db", fleetv1alpha1.ReasonKindNotOffered)
	// Even an agent that never saw the kind published.
	f.restart()
	if err := f.Workload.Delete(f.Ctx, claim); err != nil {
		t.Fatal(err)
	}
	f.WaitForGone(f.Workload, f.Namespace, "db")
	f.WaitForGone(f.Hub, f.Target, "db")
	f.WaitForDefinitionGone()
	// A kind that is published again is offered as before.
	f.Offer()
	f.CreateClaim("again")
	f.WaitForPushed("again")
}

func TestMissingRightsInTheWorkloadClusterAreReported(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	f.WorkloadUser = f.Class
	f.GrantWorkload("-own",
		rbacv1.PolicyRule{
			APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"},
			Verbs: []string{"get", "list", "watch", "create", "update"},
		},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch", "create", "update"}},
		rbacv1.PolicyRule{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}},
	)
	f.start()
	f.WaitForEvent(fleetv1alpha1.ReasonClaimsForbidden)
	f.GrantWorkload("-claims", f.RightsForClaims()...)
	// These rights suffice.
	claim := f.CreateClaim("db", agenttest.WithSecret("db-conn"))
	hub := f.WaitForPushed("db")
	f.CreateConnectionSecret("db-conn", hub, "one")
	f.MarkReady("db", "a")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	f.Within("the Secret arrives", func() error {
		return f.Workload.Get(f.Ctx, client.ObjectKey{Namespace: f.Namespace, Name: "db-conn"}, &corev1.Secret{})
	})
	if err := f.Workload.Delete(f.Ctx, claim); err != nil {
		t.Fatal(err)
	}
	f.WaitForGone(f.Workload, f.Namespace, "db")
}

// TestNothingIsLeftOfClustersThatCameAndWent engages and disengages a cluster many times.
func TestNothingIsLeftOfClustersThatCameAndWent(t *testing.T) {
	f := newFixture(t)
	f.CreateClaim("db")
	f.WaitForPushed("db")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	f.WaitForIdle()
	engaged, ok := f.agent.workloads.Get(f.Cluster)
	if !ok {
		t.Fatal("the cluster is not engaged")
	}
	kinds := len(engaged.ClaimKinds())
	round := func() {
		f.disengageCluster()
		f.Within("the cluster is disengaged", func() error {
			if _, ok := f.agent.workloads.Get(f.Cluster); ok {
				return errors.New("it is not")
			}
			return nil
		})
		f.engage()
		f.Within("the cluster's claims are watched", func() error {
			w, ok := f.agent.workloads.Get(f.Cluster)
			if !ok {
				return errors.New("it is not engaged")
			}
			kind, ok := w.KindFor("mysqlinstances." + f.Group)
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
	f.WaitForIdle()
	before := runtime.NumGoroutine()
	for range 20 {
		round()
	}
	f.WaitForIdle()
	f.Within("the goroutines are gone", func() error {
		// Less than one per round: idle connections vary.
		if after := runtime.NumGoroutine(); after > before+15 {
			return fmt.Errorf("there were %d, there are %d", before, after)
		}
		return nil
	})
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)

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
