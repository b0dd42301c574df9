// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	crevent "sigs.k8s.io/controller-runtime/pkg/event"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// countingQueue counts what is added.
type countingQueue struct {
	workqueue.TypedRateLimitingInterface[Key]
	added []Key
}

func (q *countingQueue) Add(k Key) { q.added = append(q.added, k) }

// TestOneReleaseWakesThoseThatWaitForIt has n enrolments, each refused because of another one. Each release used to
// wake n enrolments, so that n holders that left woke n² enrolments.
func TestOneReleaseWakesThoseThatWaitForIt(t *testing.T) {
	for _, n := range []int{10, 20} {
		p, err := New(Options{Sources: []Source{newFakeSource()}, Gate: nopGate{}})
		if err != nil {
			t.Fatal(err)
		}
		q := &countingQueue{}
		p.records.wakeBy(q)
		enrol := func(name string, uid types.UID) *record {
			e := &Enrolment{Object: ObjectReference{Namespace: "ns", Name: name, UID: uid}}
			return p.ensureRecord(NewKey("fake", nn(name)), e)
		}
		for i := range n {
			holder, other := enrol(fmt.Sprint("holder-", i), types.UID(fmt.Sprint("h", i))), enrol(fmt.Sprint("other-", i), types.UID(fmt.Sprint("o", i)))
			if why := p.identities.claim(t.Context(), holder, fmt.Sprint("cluster-", i)); why != nil {
				t.Fatal(why)
			}
			if why := p.identities.claim(t.Context(), other, fmt.Sprint("cluster-", i)); why == nil || why.Reason != fleetv1alpha1.ReasonDuplicateCluster {
				t.Fatalf("want a duplicate, got %v", why)
			}
			other.state, other.reason = StateBackoff, fleetv1alpha1.ReasonDuplicateCluster
			p.view.publish(other)
		}
		p.identities.release(NewKey("fake", nn("holder-3")))
		other := NewKey("fake", nn("other-3"))
		if !slices.Equal(q.added, []Key{other}) || !p.ensureRecord(other, nil).retryNow.Load() {
			t.Errorf("of %d that were refused, want the one to be tried again that waited, got %d: %v", n, len(q.added), q.added)
		}
	}
}

func TestRecordsAreFoundByClassAndNamespace(t *testing.T) {
	rs := newRecords()
	a := &record{key: Key{"capi", "ns1", "a"}, class: "gold"}
	b := &record{key: Key{"capi", "ns2", "a"}, class: "gold"}
	rs.add(a)
	rs.add(b)
	expect := func(reason string, class, namespace int) {
		t.Helper()
		if got := len(rs.byClass.Values("gold")); got != class {
			t.Errorf("%s: want %d of the class, got %d", reason, class, got)
		}
		if got := len(rs.byNamespace.Values("ns1")); got != namespace {
			t.Errorf("%s: want %d of the namespace, got %d", reason, namespace, got)
		}
	}
	expect("both were added", 2, 1)
	rs.setClass(b, "silver")
	rs.setClass(a, "gold")
	expect("one has another class", 1, 1)
	rs.remove(a)
	rs.remove(b)
	expect("both are gone", 0, 0)
	if len(rs.byKey)+len(rs.byClass)+len(rs.byNamespace) != 0 {
		t.Errorf("want nothing to be left, got %v", rs)
	}
}

// TestAClassCostsTheSameInAFleetOfAnySize counts allocations: an event used to copy what is known of each cluster of
// the fleet.
func TestAClassCostsTheSameInAFleetOfAnySize(t *testing.T) {
	cost := func(n int) float64 {
		p, err := New(Options{Sources: []Source{newFakeSource()}, Gate: nopGate{}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			class := "silver"
			if i%n == 0 {
				class = "gold"
			}
			e := &Enrolment{Class: class, Object: ObjectReference{Namespace: "ns", Name: fmt.Sprint("w", i)}}
			p.view.publish(p.ensureRecord(NewKey("fake", nn(e.Object.Name)), e))
		}
		changed := 0
		events := classHandler(p, func(mcr.ClusterName, ClassQueue) { changed++ })
		gold := &fleetv1alpha1.EnrollmentClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}}
		cost := testing.AllocsPerRun(10, func() {
			events.Create(t.Context(), crevent.TypedCreateEvent[*fleetv1alpha1.EnrollmentClass]{Object: gold}, nil)
		})
		if changed != 11 { // AllocsPerRun runs it once more than it counts.
			t.Errorf("want the one cluster of the class at each event, got %d in 11 events", changed)
		}
		return cost
	}
	if small, large := cost(50), cost(400); large > 1.1*small {
		t.Errorf("want the same work in 400 clusters as in 50, got %v and %v allocations", large, small)
	}
}

func TestAClusterIsInOneClass(t *testing.T) {
	p, err := New(Options{Sources: []Source{newFakeSource()}, Gate: nopGate{}})
	if err != nil {
		t.Fatal(err)
	}
	var r *record
	for _, class := range []string{"gold", "silver"} {
		r = p.ensureRecord(NewKey("fake", nn("w")), &Enrolment{Class: class, Object: ObjectReference{Namespace: "ns", Name: "w"}})
		r.enrolment.Class = class
		p.view.publish(r)
	}
	if gold, silver := p.InClass("gold"), p.InClass("silver"); len(gold) != 0 || !slices.Equal(silver, []mcr.ClusterName{r.name}) {
		t.Errorf("want the cluster in its class alone, got %v and %v", gold, silver)
	}
	p.view.withdraw(r.name)
	if len(p.view.inClass) != 0 {
		t.Errorf("want nothing to be left, got %v", p.view.inClass)
	}
}
