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
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/agenttest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/view"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// The tests in this file cover the chapter "Conflicts" of the Crossplane agent's design, with up to three workload
// clusters, each with its own API server.

// moreWorkloads provides the API servers of two more workload clusters, for one test at a time.
var moreWorkloads = controllertest.NewLanes(1, func() ([]*rest.Config, error) { //nolint:gochecknoglobals // Started once.
	var configs []*rest.Config
	for range 2 {
		env, err := servers.Start()
		if err != nil {
			return nil, err
		}
		configs = append(configs, env.Config)
	}
	return configs, nil
})

// join enrols another workload cluster with the same class, and returns a fixture for its user. Numbers 0 and 1 are
// different clusters.
func (f *fixture) join(number int, identifier string) *fixture {
	f.T.Helper()
	if f.others == nil {
		f.others = moreWorkloads.Take(f.T)
		// Before the next test gets them.
		f.T.Cleanup(f.stopAgent)
	}
	m := *f
	m.cluster = mcr.ClusterName(fmt.Sprintf("%s-%d", f.cluster, number))
	m.identifier, m.workloadConfig, m.workloadAsked = identifier, f.others[number], newRequests(f.number)
	m.workload = controllertest.NewClient(f.T, m.workloadConfig, agenttest.Scheme())
	m.Create(m.workload, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.namespace}})
	m.enrol()
	m.engage()
	return &m
}

// enrol enrols the cluster of a fixture in the fleet.
func (f *fixture) enrol() {
	f.fleet.Set(connection.Cluster{
		Name: f.cluster, State: connection.StateConnected, UID: f.kubeSystemUID(),
		Enrolment: connection.Enrolment{Identifier: f.identifier, Class: f.class, Object: connection.ObjectReference{
			GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
			Namespace:        "default", Name: f.class, UID: types.UID(f.cluster),
		}},
	})
}

// in returns a fixture for the user of another namespace of the same workload cluster. It creates the namespace.
func (f *fixture) in(namespace string) *fixture {
	f.T.Helper()
	m := *f
	m.namespace = namespace
	m.Create(m.workload, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	return &m
}

func (f *fixture) source() ownership.Source {
	return ownership.Source{Identifier: f.identifier, Namespace: f.namespace}
}

// heldBy waits until an object in the hub names a source.
func (f *fixture) heldBy(namespace string, s ownership.Source) *unstructured.Unstructured {
	f.T.Helper()
	var u *unstructured.Unstructured
	f.Within("db in "+namespace+" is held by "+s.String(), func() (err error) {
		u, err = f.get(f.hub, namespace, "db")
		if err == nil && view.MustSource(u) != s {
			err = fmt.Errorf("it is held by %s", view.MustSource(u))
		}
		return err
	})
	return u
}

// conflictsWith waits until the claim of a fixture is refused because of another, as shown by the condition and the
// annotation.
func (f *fixture) conflictsWith(s ownership.Source) {
	f.T.Helper()
	f.Within("db in "+f.namespace+" of "+f.identifier+" conflicts with "+s.String(), func() error {
		u, err := f.get(f.workload, f.namespace, "db")
		if err != nil {
			return err
		}
		message, _ := propagation.AgentSynced(u)["message"].(string)
		noted := u.GetAnnotations()[fleetv1alpha1.ConflictAnnotation]
		holder := fmt.Sprintf("the namespace %q of the cluster with the identifier %q", s.Namespace, s.Identifier)
		if propagation.AgentSynced(u)["reason"] != reason.ReasonConflict || !strings.Contains(message, holder) || noted != holder {
			return fmt.Errorf("it says %q and is annotated %q", message, noted)
		}
		return nil
	})
}

// onlyOneHolds creates the same claim as each user, and shows that the first one holds the name; and that when its
// holder deletes it, one of the others gets it, until none is left.
func onlyOneHolds(t *testing.T, target string, users ...*fixture) {
	t.Helper()
	for _, u := range users {
		u.claim("db")
		if u == users[0] {
			u.synced("db", reason.ReasonSynced)
		}
	}
	holder := users[0]
	for len(users) > 0 {
		before := holder.heldBy(target, holder.source())
		for _, u := range users {
			if u != holder {
				u.conflictsWith(holder.source())
			}
		}
		if now, err := holder.get(holder.hub, target, "db"); err != nil || now.GetGeneration() != before.GetGeneration() {
			t.Errorf("want the others to write nothing, got %v (%v)", now.Object, err)
		}
		var rest []*fixture
		for _, u := range users {
			if u != holder {
				rest = append(rest, u)
			}
		}
		if err := holder.workload.Delete(t.Context(), holder.object(holder.namespace, "db")); err != nil {
			t.Fatal(err)
		}
		holder.gone(holder.workload, holder.namespace, "db")
		users = rest
		if len(users) == 0 {
			return
		}
		next := users[0]
		next.Within("one of the others gets it", func() error {
			now, err := next.get(next.hub, target, "db")
			if err != nil {
				return err
			}
			for _, u := range users {
				if view.MustSource(now) == u.source() {
					holder = u
					return nil
				}
			}
			return errors.New("it is none of theirs")
		})
	}
}

// noneConflict creates the same claim as each user and shows that each has its own.
func noneConflict(targets map[string]*fixture) {
	for _, u := range targets {
		u.claim("db")
	}
	for target, u := range targets {
		u.synced("db", reason.ReasonSynced)
		u.heldBy(target, u.source())
	}
}

func anyTarget(c *fleetv1alpha1.EnrollmentClass) {
	c.Spec.Agent.AllowedTargetNamespaces = &fleetv1alpha1.AllowedNamespaces{}
}

func matching(c *fleetv1alpha1.EnrollmentClass) {
	c.Spec.Agent.DefaultTargetNamespace, c.Spec.Agent.MatchNamespaces = "", true
	anyTarget(c)
}

func TestConflictsWhenEachNamespaceIsAnnotated(t *testing.T) {
	t.Parallel()
	t.Run("NotInASingleCluster", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, anyTarget)
		other := f.in(f.namespace + "-b")
		f.hubNamespace(f.target + "-a")
		f.hubNamespace(f.target + "-b")
		f.targetAnnotation(f.target + "-a")
		other.targetAnnotation(f.target + "-b")
		noneConflict(map[string]*fixture{f.target + "-a": f, f.target + "-b": other})
	})
	t.Run("BetweenThreeClustersWithACommonAnnotation", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, anyTarget)
		users := []*fixture{f, f.join(0, f.identifier+"-2"), f.join(1, f.identifier+"-3")}
		f.hubNamespace(f.target + "-common")
		for _, u := range users {
			u.targetAnnotation(f.target + "-common")
		}
		onlyOneHolds(t, f.target+"-common", users...)
	})
}

func TestConflictsWhenNamespacesMatch(t *testing.T) {
	t.Parallel()
	t.Run("NotInASingleCluster", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, matching)
		other := f.in(f.namespace + "-b")
		f.hubNamespace(f.namespace)
		f.hubNamespace(other.namespace)
		noneConflict(map[string]*fixture{f.namespace: f, other.namespace: other})
	})
	t.Run("BetweenTwoClustersWithNamespacesOfTheSameName", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, matching)
		f.hubNamespace(f.namespace)
		onlyOneHolds(t, f.namespace, f, f.join(0, f.identifier+"-2"))
	})
}

func TestConflictsWhenNamespacesRollUp(t *testing.T) {
	t.Parallel()
	t.Run("BetweenNamespacesOfASingleCluster", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		onlyOneHolds(t, f.target, f, f.in(f.namespace+"-b"))
	})
	t.Run("BetweenThreeClusters", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		onlyOneHolds(t, f.target, f, f.join(0, f.identifier+"-2"), f.join(1, f.identifier+"-3"))
	})
}

func TestReplacementWithTheSameIdentifierTakesOver(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.claim("db", withSecret("db-conn"))
	before := f.pushed("db")
	f.connectionSecret("db-conn", before, "one")
	f.ready("db", "db.example.org")
	f.synced("db", reason.ReasonSynced)
	f.settled()

	// The cluster is lost: it is un-enrolled, and cannot be offboarded.
	f.disengageCluster()
	f.fleet.Forget(f.cluster)
	now := f.heldBy(f.target, f.source())
	if now.GetDeletionTimestamp() != nil {
		t.Fatal("want nothing to be deleted because a cluster is lost")
	}
	generation := now.GetGeneration()

	replacement := f.join(0, f.identifier)
	replacement.claim("db", withSecret("db-conn"))
	claim := replacement.synced("db", reason.ReasonSynced)
	if got, _, _ := unstructured.NestedString(claim.Object, "status", "address"); got != "db.example.org" {
		t.Errorf("want the status of what is there, got address %q", got)
	}
	replacement.Within("the Secret arrives", func() error {
		s := &corev1.Secret{}
		err := replacement.workload.Get(f.Ctx, types.NamespacedName{Namespace: f.namespace, Name: "db-conn"}, s)
		if err == nil && string(s.Data["password"]) != "one" {
			err = fmt.Errorf("the password is %q", s.Data["password"])
		}
		return err
	})
	now = replacement.heldBy(f.target, replacement.source())
	if now.GetUID() != before.GetUID() || now.GetGeneration() != generation {
		t.Errorf("want nothing to be provisioned anew, got UID %s for %s and generation %d for %d",
			now.GetUID(), before.GetUID(), now.GetGeneration(), generation)
	}
}
