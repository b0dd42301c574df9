// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package rollup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// reportFleet is the fleet of one namespace, and the source of its clusters. It says that every cluster of another
// namespace is enrolled, so that the reports of other tests are left alone.
type reportFleet struct {
	namespace string

	mu          sync.Mutex
	clusters    map[mcr.ClusterName]connection.Cluster
	enrolled    map[types.NamespacedName]bool
	subscribers []func(mcr.ClusterName)
}

func newReportFleet(namespace string) *reportFleet {
	return &reportFleet{namespace: namespace, clusters: map[mcr.ClusterName]connection.Cluster{}, enrolled: map[types.NamespacedName]bool{}}
}

func (f *reportFleet) List() []connection.Cluster {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []connection.Cluster
	for _, c := range f.clusters {
		list = append(list, c)
	}
	return list
}

func (f *reportFleet) Lookup(name mcr.ClusterName) (connection.Cluster, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.clusters[name]
	return c, ok
}

func (f *reportFleet) Subscribe(changed func(mcr.ClusterName)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.subscribers = append(f.subscribers, changed)
}

func (f *reportFleet) Name() string { return "capi" }

func (f *reportFleet) Describe(_ context.Context, key types.NamespacedName) (*connection.Enrolment, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if key.Namespace == f.namespace && !f.enrolled[key] {
		return nil, connection.ErrNotEnrolled
	}
	return &connection.Enrolment{}, nil
}

func (f *reportFleet) change(name mcr.ClusterName, change func(key types.NamespacedName)) {
	key, _ := connection.ParseClusterName(name)
	f.mu.Lock()
	change(key.Object())
	subscribers := slices.Clone(f.subscribers)
	f.mu.Unlock()
	for _, s := range subscribers {
		s(name)
	}
}

func (f *reportFleet) set(c connection.Cluster) {
	f.change(c.Name, func(key types.NamespacedName) { f.clusters[c.Name], f.enrolled[key] = c, true })
}

func (f *reportFleet) unenrol(name mcr.ClusterName) {
	f.change(name, func(key types.NamespacedName) { delete(f.clusters, name); delete(f.enrolled, key) })
}

// reportHub is a namespace of a hub in which reports are written.
type reportHub struct {
	t         *testing.T
	config    *rest.Config
	direct    client.Client
	namespace string
	fleet     *reportFleet
	rollup    *Collector
	writes    *atomic.Int64
	stop      func()
}

func newReportHub(t *testing.T) *reportHub {
	t.Helper()
	hub := hubs.Take(t).Config
	direct, err := client.New(hub, client.Options{Scheme: scheme()})
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "reports-"}}
	if err := direct.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return &reportHub{t: t, config: hub, direct: direct, namespace: ns.Name, fleet: newReportFleet(ns.Name), writes: &atomic.Int64{}}
}

// start starts a manager; each has the state of a new process.
func (h *reportHub) start() {
	h.t.Helper()
	mgr, err := ctrl.NewManager(h.config, ctrl.Options{
		Scheme:  scheme(),
		Metrics: metricsserver.Options{BindAddress: "0"},
		NewClient: func(cfg *rest.Config, o client.Options) (client.Client, error) {
			c, err := client.NewWithWatch(cfg, o)
			if err != nil {
				return nil, err
			}
			return h.counting(c), nil
		},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.rollup, err = Setup(mgr, h.fleet, []connection.EnrolmentGetter{h.fleet}, clock.RealClock{}, new(true))
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(h.t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Errorf("the manager ended with an error: %v", err)
		}
	})
	h.t.Cleanup(h.stop)
}

// counting counts the writes to this namespace.
func (h *reportHub) counting(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			h.writes.Add(1)
			return c.Apply(ctx, obj, opts...)
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			h.writes.Add(1)
			return c.SubResource(sub).Apply(ctx, obj, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			h.writes.Add(1)
			return c.Delete(ctx, obj, opts...)
		},
	})
}

func (h *reportHub) cluster(name string, modify ...func(*connection.Cluster)) connection.Cluster {
	c := connection.Cluster{
		Name: mcr.ClusterName("capi/" + h.namespace + "/" + name), State: connection.StateConnected, Reason: fleetv1alpha1.ReasonConnected,
		Enrolment: connection.Enrolment{Object: connection.ObjectReference{
			GroupVersionKind: schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Cluster"},
			Namespace:        h.namespace, Name: name, UID: types.UID("uid-of-" + name),
		}},
	}
	for _, m := range modify {
		m(&c)
	}
	return c
}

func unreachable(c *connection.Cluster) {
	c.State, c.Reason, c.Message = connection.StateBackoff, fleetv1alpha1.ReasonDialError, "The API server does not answer"
}

// engage engages a cluster whose Applications are these.
func (h *reportHub) engage(c connection.Cluster, applications map[string]appsv1alpha1.Health) {
	h.fleet.set(c)
	h.rollup.Engaged(c.Name)
	for name, assessed := range applications {
		h.rollup.Observe(c.Name, named(name), sum(assessed))
	}
	h.rollup.Synced(c.Name)
}

// report returns the report of a cluster, or nil.
func (h *reportHub) report(cluster string) *fleetv1alpha1.ApplicationReport {
	h.t.Helper()
	r := &fleetv1alpha1.ApplicationReport{}
	err := h.direct.Get(h.t.Context(), client.ObjectKey{Namespace: h.namespace, Name: "capi-" + cluster}, r)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// wait waits until the report of a cluster meets a condition.
func (h *reportHub) wait(what, cluster string, met func(*fleetv1alpha1.ApplicationReport) bool) *fleetv1alpha1.ApplicationReport {
	h.t.Helper()
	var r *fleetv1alpha1.ApplicationReport
	err := testenv.Poll(h.t.Context(), testenv.Patience, func(context.Context) (bool, error) {
		r = h.report(cluster)
		return met(r), nil
	})
	if err != nil {
		h.t.Fatalf("not seen within a minute: %s; the report is %+v", what, r)
	}
	return r
}

// isCurrent reports whether a report is current, or why not.
func isCurrent(reason string) func(*fleetv1alpha1.ApplicationReport) bool {
	return func(r *fleetv1alpha1.ApplicationReport) bool {
		if r == nil {
			return false
		}
		c := meta.FindStatusCondition(r.Status.Conditions, fleetv1alpha1.ConditionCurrent)
		return c != nil && c.Reason == reason
	}
}

func TestReportsOfTwoClustersWithTheSameApplication(t *testing.T) {
	t.Parallel()
	h := newReportHub(t)
	h.start()
	w1, w2 := h.cluster("w1"), h.cluster("w2")
	h.engage(w1, map[string]appsv1alpha1.Health{"wordpress": appsv1alpha1.HealthHealthy})
	h.engage(w2, map[string]appsv1alpha1.Health{"wordpress": appsv1alpha1.HealthDegraded, "shop": appsv1alpha1.HealthMissing})

	first := h.wait("the report of w1", "w1", isCurrent(fleetv1alpha1.ReasonWatching))
	if diff := cmp.Diff(fleetv1alpha1.ApplicationCounts{Total: 1, Healthy: 1, Installed: 1}, first.Status.Applications); diff != "" {
		t.Errorf("w1: -want +got:\n%s", diff)
	}
	owner := []metav1.OwnerReference{{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", Name: "w1", UID: "uid-of-w1"}}
	if diff := cmp.Diff(owner, first.OwnerReferences); diff != "" {
		t.Errorf("The report goes with the enrolled object; -want +got:\n%s", diff)
	}
	second := h.wait("the report of w2", "w2", isCurrent(fleetv1alpha1.ReasonWatching))
	if second.Status.Message != "shop/wordpress: It is Degraded." || len(second.Status.Worst) != 2 || second.Status.Applications.Healthy != 0 {
		t.Errorf("w2: unexpected status %+v", second.Status)
	}

	h.rollup.Observe(w2.Name, named("wordpress"), sum(appsv1alpha1.HealthHealthy))
	h.rollup.Forget(w2.Name, named("shop"))
	h.wait("w2 mended", "w2", func(r *fleetv1alpha1.ApplicationReport) bool {
		return r.Status.Applications == fleetv1alpha1.ApplicationCounts{Total: 1, Healthy: 1, Installed: 1} && r.Status.Message == "" && len(r.Status.Worst) == 0
	})
	if got := h.report("w1").ResourceVersion; got != first.ResourceVersion {
		t.Errorf("the report of w1 was written although nothing changed there: %s became %s", first.ResourceVersion, got)
	}
}

func TestReportOfAnUnreachableCluster(t *testing.T) {
	t.Parallel()
	h := newReportHub(t)
	h.start()
	applications := map[string]appsv1alpha1.Health{"a": appsv1alpha1.HealthHealthy, "b": appsv1alpha1.HealthDegraded}
	h.engage(h.cluster("w1"), applications)
	h.wait("the report", "w1", isCurrent(fleetv1alpha1.ReasonWatching))

	h.fleet.set(h.cluster("w1", unreachable))
	h.rollup.Disengaged(h.cluster("w1").Name)
	lost := h.wait("the lost connection", "w1", isCurrent(fleetv1alpha1.ReasonUnreachable)).Status
	if diff := cmp.Diff(fleetv1alpha1.ApplicationCounts{Total: 2, Unknown: 2}, lost.Applications); diff != "" {
		t.Errorf("A cluster that cannot be reached is not shown as healthy; -want +got:\n%s", diff)
	}
	if lost.LastSeen == nil || lost.LastKnown == nil || lost.LastKnown.Applications.Healthy != 1 || len(lost.Worst) != 0 ||
		!strings.Contains(lost.Message, "does not answer") {
		t.Errorf("unexpected status %+v", lost)
	}

	h.engage(h.cluster("w1"), applications)
	back := h.wait("the cluster that is back", "w1", isCurrent(fleetv1alpha1.ReasonWatching)).Status
	if back.LastSeen != nil || back.LastKnown != nil || back.Applications.Healthy != 1 {
		t.Errorf("unexpected status %+v", back)
	}

	h.rollup.Unwatched(h.cluster("w1").Name, condition.Error{Reason: fleetv1alpha1.ReasonDisabled, Message: "The class says so."})
	disabled := h.wait("that Applications are disabled", "w1", isCurrent(fleetv1alpha1.ReasonDisabled)).Status
	if disabled.LastSeen != nil || disabled.Applications.Healthy != 0 || disabled.LastKnown == nil {
		t.Errorf("unexpected status %+v", disabled)
	}
}

func TestReportGoesWhenTheClusterIsUnenrolled(t *testing.T) {
	t.Parallel()
	h := newReportHub(t)
	h.start()
	for _, name := range []string{"w1", "w2", "w3"} {
		h.engage(h.cluster(name), nil)
		h.wait("the report of "+name, name, isCurrent(fleetv1alpha1.ReasonWatching))
	}
	h.rollup.Disengaged(h.cluster("w1").Name)
	h.fleet.unenrol(h.cluster("w1").Name)
	h.wait("that it is gone", "w1", func(r *fleetv1alpha1.ApplicationReport) bool { return r == nil })

	// w2 is un-enrolled while no manager runs; w3 stays enrolled, and is not in the fleet yet.
	h.stop()
	h.fleet.unenrol(h.cluster("w2").Name)
	h.fleet.change(h.cluster("w3").Name, func(types.NamespacedName) { delete(h.fleet.clusters, h.cluster("w3").Name) })
	foreign := &fleetv1alpha1.ApplicationReport{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "copied", Annotations: map[string]string{
		fleetv1alpha1.ClusterNameAnnotation: string(h.cluster("w2").Name),
	}}}
	if err := h.direct.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	h.start()
	h.wait("that it is gone", "w2", func(r *fleetv1alpha1.ApplicationReport) bool { return r == nil })
	h.engage(h.cluster("w4"), nil) // By now every existing report has been reconciled.
	h.wait("the report of w4", "w4", isCurrent(fleetv1alpha1.ReasonWatching))
	if h.report("w3") == nil {
		t.Error("the report of a cluster that is enrolled and not in the fleet yet must stay")
	}
	if err := h.direct.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); err != nil {
		t.Errorf("what is about no cluster is left alone: %v", err)
	}
}

// Kubernetes deletes a report with its owner, the enrolled object, while the cluster is still disconnecting. A report
// recreated then was deleted and recreated in a tight loop.
func TestNoReportForAnEnrolmentThatIsGone(t *testing.T) {
	t.Parallel()
	h := newReportHub(t)
	h.start()
	h.engage(h.cluster("w1"), nil)
	old := h.wait("the report", "w1", isCurrent(fleetv1alpha1.ReasonWatching))
	h.fleet.set(h.cluster("w1", func(c *connection.Cluster) {
		c.State, c.Reason, c.Unenrolled = connection.StateDraining, fleetv1alpha1.ReasonUnenrolled, true
	}))
	if err := h.direct.Delete(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	// The cache sees the deletion before the report of another cluster, so the first cluster is enqueued before that one.
	h.engage(h.cluster("w2"), nil)
	h.wait("the report of another cluster", "w2", isCurrent(fleetv1alpha1.ReasonWatching))
	if r := h.report("w1"); r != nil {
		t.Errorf("a report was made for an enrolled object that is gone: %+v", r.ObjectMeta)
	}

	h.fleet.set(h.cluster("w1")) // After it is enrolled again, it has a report.
	h.wait("the report of a cluster that is enrolled again", "w1", func(r *fleetv1alpha1.ApplicationReport) bool { return r != nil })
}

func TestReportOfAClusterThatWasReplaced(t *testing.T) {
	t.Parallel()
	h := newReportHub(t)
	h.start()
	h.engage(h.cluster("w1"), map[string]appsv1alpha1.Health{"a": appsv1alpha1.HealthHealthy})
	old := h.wait("the report", "w1", isCurrent(fleetv1alpha1.ReasonWatching))
	h.rollup.Disengaged(h.cluster("w1").Name)
	h.fleet.set(h.cluster("w1", unreachable, func(c *connection.Cluster) { c.Enrolment.Object.UID = "another" }))
	r := h.wait("the report of another cluster of the name", "w1", func(r *fleetv1alpha1.ApplicationReport) bool {
		return isCurrent(fleetv1alpha1.ReasonUnreachable)(r) && r.UID != old.UID
	})
	if r.Status.LastKnown != nil || r.Status.LastSeen != nil || r.OwnerReferences[0].UID != "another" {
		t.Errorf("what was true of one cluster is not reported of another: %+v", r.Status)
	}
}

func TestRestartWritesNoReport(t *testing.T) {
	t.Parallel()
	h := newReportHub(t)
	h.start()
	applications := map[string]appsv1alpha1.Health{"a": appsv1alpha1.HealthHealthy, "b": appsv1alpha1.HealthDegraded}
	h.engage(h.cluster("w1"), applications)
	h.fleet.set(h.cluster("lost", unreachable))
	before := h.wait("the report", "w1", isCurrent(fleetv1alpha1.ReasonWatching))
	lost := h.wait("the other report", "lost", isCurrent(fleetv1alpha1.ReasonUnreachable))

	h.stop()
	connecting := func(c *connection.Cluster) {
		c.State, c.Reason = connection.StateConnecting, fleetv1alpha1.ReasonConnecting
	}
	h.fleet.set(h.cluster("w1", connecting))
	h.fleet.set(h.cluster("lost", connecting))
	h.writes.Store(0)
	h.start()
	// A reconcile that finds nothing to do cannot be observed, so another cluster shows that the others were reconciled.
	h.engage(h.cluster("probe1"), nil)
	h.wait("the first probe", "probe1", isCurrent(fleetv1alpha1.ReasonWatching))
	h.fleet.set(h.cluster("lost", unreachable))
	h.engage(h.cluster("w1"), applications)
	h.engage(h.cluster("probe2"), nil)
	h.wait("the second probe", "probe2", isCurrent(fleetv1alpha1.ReasonWatching))
	if got := h.report("w1"); got.ResourceVersion != before.ResourceVersion {
		t.Errorf("a restart wrote the report of a cluster in which nothing changed:\n%s", cmp.Diff(before.Status, got.Status))
	}
	if got := h.report("lost"); got.ResourceVersion != lost.ResourceVersion {
		t.Errorf("a restart wrote the report of a cluster that is as lost as before:\n%s", cmp.Diff(lost.Status, got.Status))
	}
}

func TestManyApplicationsAreFewWrites(t *testing.T) {
	t.Parallel()
	h := newReportHub(t)
	h.start()
	c := h.cluster("w1")
	h.fleet.set(c)
	h.rollup.Engaged(c.Name)
	began := time.Now()
	const many = 5000
	for i := range many {
		h.rollup.Observe(c.Name, named(fmt.Sprintf("app-%d", i)), sum(appsv1alpha1.HealthProgressing))
	}
	h.rollup.Synced(c.Name)
	for i := range many {
		h.rollup.Observe(c.Name, named(fmt.Sprintf("app-%d", i)), sum(appsv1alpha1.HealthHealthy))
	}
	h.wait("all of them", "w1", func(r *fleetv1alpha1.ApplicationReport) bool {
		return r != nil && r.Status.Applications == fleetv1alpha1.ApplicationCounts{Total: many, Healthy: many, Installed: many} &&
			r.Status.Components == fleetv1alpha1.ComponentTotals{Wanted: 3 * many, Installed: 3 * many}
	})
	// The report itself, its first status at once, and no more than one status in each second since.
	most := int64(2 + time.Since(began)/rollupInterval + 1)
	if got := h.writes.Load(); got > most {
		t.Errorf("want at most %d writes, got %d", most, got)
	}
}

func TestReportThatWasAlteredIsPutBack(t *testing.T) {
	t.Parallel()
	h := newReportHub(t)
	h.start()
	h.engage(h.cluster("w1"), map[string]appsv1alpha1.Health{"a": appsv1alpha1.HealthDegraded})
	r := h.wait("the report", "w1", isCurrent(fleetv1alpha1.ReasonWatching))
	r.Status.Applications.Healthy, r.Status.Worst = 7, nil
	if err := h.direct.Status().Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	h.wait("the status as it was", "w1", func(r *fleetv1alpha1.ApplicationReport) bool {
		return r.Status.Applications.Healthy == 0 && len(r.Status.Worst) == 1
	})
	if err := h.direct.Delete(t.Context(), h.report("w1")); err != nil {
		t.Fatal(err)
	}
	h.wait("another report", "w1", func(now *fleetv1alpha1.ApplicationReport) bool {
		return now != nil && now.UID != r.UID && isCurrent(fleetv1alpha1.ReasonWatching)(now) && now.Status.Applications.Degraded == 1
	})
}
