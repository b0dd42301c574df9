// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// The tests in this file cover the chapter "Conflicts" of the Crossplane agent's design, with two workload clusters,
// each with its own API server.

// moreWorkloads provides the API server of another workload cluster, for one test at a time.
var moreWorkloads = controllertest.NewLanes(1, func() (*rest.Config, error) { //nolint:gochecknoglobals // Started once.
	env, err := servers.Start()
	if err != nil {
		return nil, err
	}
	return env.Config, nil
})

// join enrols another workload cluster with the same class, and returns a fixture for its user.
func (f *fixture) join(identifier string) *fixture {
	f.T.Helper()
	m := *f
	m.WorkloadConfig = moreWorkloads.Take(f.T)
	f.T.Cleanup(f.stopAgent) // Before the next test gets it.
	m.Cluster = f.Cluster + "-2"
	m.Identifier, m.WorkloadRequests = identifier, agenttest.NewRequests(f.Number)
	m.Workload = controllertest.NewClient(f.T, m.WorkloadConfig, controllertest.Scheme())
	m.Create(m.Workload, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.Namespace}})
	m.enrol()
	m.engage()
	return &m
}

// enrol enrols the cluster of a fixture in the fleet.
func (f *fixture) enrol() {
	f.fleet.Set(connection.Cluster{
		Name: f.Cluster, State: connection.StateConnected, UID: f.KubeSystemUID(),
		Enrolment: connection.Enrolment{Identifier: f.Identifier, Class: f.Class, Object: connection.ObjectReference{
			GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
			Namespace:        "default", Name: f.Class, UID: types.UID(f.Cluster),
		}},
	})
}

// in returns a fixture for the user of another namespace of the same workload cluster. It creates the namespace.
func (f *fixture) in(namespace string) *fixture {
	f.T.Helper()
	m := *f
	m.Namespace = namespace
	m.Create(m.Workload, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	return &m
}

func (f *fixture) source() ownership.Source {
	return ownership.Source{Identifier: f.Identifier, Namespace: f.Namespace}
}

// heldBy waits until an object in the hub names a source.
func (f *fixture) heldBy(namespace string, s ownership.Source) *unstructured.Unstructured {
	f.T.Helper()
	var u *unstructured.Unstructured
	f.Within("db in "+namespace+" is held by "+s.String(), func() (err error) {
		u, err = f.GetClaim(f.Hub, namespace, "db")
		if err == nil && index.SourceOrZero(u) != s {
			err = fmt.Errorf("it is held by %s", index.SourceOrZero(u))
		}
		return err
	})
	return u
}

// conflictsWith waits until the claim of a fixture is refused because of another, as shown by the condition and the
// annotation.
func (f *fixture) conflictsWith(s ownership.Source) {
	f.T.Helper()
	f.Within("db in "+f.Namespace+" of "+f.Identifier+" conflicts with "+s.String(), func() error {
		u, err := f.GetClaim(f.Workload, f.Namespace, "db")
		if err != nil {
			return err
		}
		message, _ := propagation.AgentSynced(u)["message"].(string)
		noted := u.GetAnnotations()[fleetv1alpha1.ConflictAnnotation]
		holder := fmt.Sprintf("the namespace %q of the cluster with the identifier %q", s.Namespace, s.Identifier)
		if propagation.AgentSynced(u)["reason"] != fleetv1alpha1.ReasonConflict || !strings.Contains(message, holder) || noted != holder {
			return fmt.Errorf("it says %q and is annotated %q", message, noted)
		}
		return nil
	})
}

// TestConflictsWhenNamespacesRollUp: where the claims of a namespace go is in package plan. The first of several claims
// holds the name, and the others write nothing, nor when they end, until its holder deletes it.
func TestConflictsWhenNamespacesRollUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	beside, elsewhere := f.in(f.Namespace+"-b"), f.join(f.Identifier+"-2")
	f.CreateClaim("db")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	before := f.heldBy(f.Target, f.source())
	for _, u := range []*fixture{beside, elsewhere} {
		u.CreateClaim("db")
		u.conflictsWith(f.source())
	}

	refused := elsewhere.NewClaim(elsewhere.Namespace, "db")
	elsewhere.Edit(elsewhere.Workload, refused, func() { refused.SetFinalizers([]string{fleetv1alpha1.RequirementFinalizer}) })
	if err := elsewhere.Workload.Delete(f.Ctx, refused); err != nil {
		t.Fatal(err)
	}
	elsewhere.WaitForGone(elsewhere.Workload, elsewhere.Namespace, "db")
	now := f.heldBy(f.Target, f.source())
	if now.GetUID() != before.GetUID() || now.GetDeletionTimestamp() != nil || now.GetGeneration() != before.GetGeneration() {
		t.Errorf("want the others to write nothing, got %v", now.Object)
	}

	if err := f.Workload.Delete(f.Ctx, f.NewClaim(f.Namespace, "db")); err != nil {
		t.Fatal(err)
	}
	f.WaitForGone(f.Workload, f.Namespace, "db")
	beside.heldBy(f.Target, beside.source())
	beside.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
}

// TestReplacementWithTheSameIdentifierTakesOver: a cluster that replaces another under its identifier has entirely
// different namespaces.
func TestReplacementWithTheSameIdentifierTakesOver(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.CreateClaim("db", agenttest.WithSecret("db-conn"))
	before := f.WaitForPushed("db")
	f.CreateConnectionSecret("db-conn", before, "one")
	f.MarkReady("db", "db.example.org")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	f.WaitForIdle()

	// The cluster is lost: it is un-enrolled, and cannot be offboarded.
	f.disengageCluster()
	f.fleet.Forget(f.Cluster)
	now := f.heldBy(f.Target, f.source())
	if now.GetDeletionTimestamp() != nil {
		t.Fatal("want nothing to be deleted because a cluster is lost")
	}
	generation := now.GetGeneration()

	replacement := f.join(f.Identifier)
	replacement.CreateClaim("db", agenttest.WithSecret("db-conn"))
	claim := replacement.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	if got, _, _ := unstructured.NestedString(claim.Object, "status", "address"); got != "db.example.org" {
		t.Errorf("want the status of what is there, got address %q", got)
	}
	replacement.Within("the Secret arrives", func() error {
		s := &corev1.Secret{}
		err := replacement.Workload.Get(f.Ctx, types.NamespacedName{Namespace: f.Namespace, Name: "db-conn"}, s)
		if err == nil && string(s.Data["password"]) != "one" {
			err = fmt.Errorf("the password is %q", s.Data["password"])
		}
		return err
	})
	f.Within("the object names where it comes from now", func() error {
		now, err := f.GetClaim(f.Hub, f.Target, "db")
		if err == nil && ownership.GetResidence(now).Cluster != types.UID(replacement.KubeSystemUID()) {
			err = errors.New("it names " + string(ownership.GetResidence(now).Cluster))
		}
		return err
	})
	now = replacement.heldBy(f.Target, replacement.source())
	if now.GetUID() != before.GetUID() || now.GetGeneration() != generation {
		t.Errorf("want nothing to be provisioned again, got UID %s for %s and generation %d for %d",
			now.GetUID(), before.GetUID(), now.GetGeneration(), generation)
	}
}
