// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

var hubConfig *rest.Config

func TestMain(m *testing.M) {
	os.Exit(runWithHub(m))
}

func runWithHub(m *testing.M) int {
	ctx := context.Background()
	bases, err := testenv.ModuleCRDs(ctx, "sigs.k8s.io/cluster-inventory-api", "config/crd/bases")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	env, err := testenv.New(testenv.CRDs(), filepath.Join(bases, "multicluster.x-k8s.io_clusterprofiles.yaml"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if hubConfig, err = testenv.Start(env); err != nil {
		fmt.Fprintln(os.Stderr, "cannot start the API server:", err)
		return 1
	}
	defer func() { _ = env.Stop() }()
	return m.Run()
}

// fakeFleet is a fleet, and the source of its clusters.
type fakeFleet struct {
	mu          sync.Mutex
	clusters    map[mcr.ClusterName]connection.Cluster
	enrolled    map[types.NamespacedName]bool
	mayLeave    map[mcr.ClusterName]bool
	describeErr error
	subscribers []func(mcr.ClusterName)
}

func newFakeFleet(clusters ...connection.Cluster) *fakeFleet {
	f := &fakeFleet{clusters: map[mcr.ClusterName]connection.Cluster{}, enrolled: map[types.NamespacedName]bool{}}
	for _, c := range clusters {
		f.set(c)
	}
	return f
}

func (f *fakeFleet) MayLeave(name mcr.ClusterName) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mayLeave[name]
}

func (f *fakeFleet) List() []connection.Cluster {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]connection.Cluster, 0, len(f.clusters))
	for _, c := range f.clusters {
		list = append(list, c)
	}
	return list
}

func (f *fakeFleet) Lookup(name mcr.ClusterName) (connection.Cluster, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.clusters[name]
	return c, ok
}

func (f *fakeFleet) Subscribe(changed func(mcr.ClusterName)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.subscribers = append(f.subscribers, changed)
}

func (f *fakeFleet) Name() string { return "capi" }

func (f *fakeFleet) Describe(_ context.Context, key types.NamespacedName) (*connection.Enrolment, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.describeErr != nil {
		return nil, f.describeErr
	}
	if !f.enrolled[key] {
		return nil, connection.ErrNotEnrolled
	}
	return &connection.Enrolment{}, nil
}

func (f *fakeFleet) failDescribe(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.describeErr = err
}

// enrol makes the source say that an object is enrolled, without its cluster being in the fleet.
func (f *fakeFleet) enrol(namespace, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.enrolled[types.NamespacedName{Namespace: namespace, Name: name}] = true
}

func (f *fakeFleet) set(c connection.Cluster) {
	key, _ := connection.ParseClusterName(c.Name)
	f.enrol(key.Namespace, key.Name)
	f.mu.Lock()
	f.clusters[c.Name] = c
	f.mu.Unlock()
	f.notify(c.Name)
}

func (f *fakeFleet) remove(name mcr.ClusterName) {
	key, _ := connection.ParseClusterName(name)
	f.mu.Lock()
	delete(f.clusters, name)
	delete(f.enrolled, key.Object())
	f.mu.Unlock()
	f.notify(name)
}

func (f *fakeFleet) notify(name mcr.ClusterName) {
	f.mu.Lock()
	subscribers := slices.Clone(f.subscribers)
	f.mu.Unlock()
	for _, s := range subscribers {
		s(name)
	}
}

// hub is a running manager in its own namespace.
type hub struct {
	client.Client
	namespace string

	// writes and counted are how often the manager would have written, and how often it began to count the clusters of all
	// classes.
	writes, counted *atomic.Int64
}

func startHub(t *testing.T, fleet *fakeFleet, prepare func(hub), modify ...func(*Options)) hub {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, fleetv1alpha1.AddToScheme, inventoryv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	direct, err := client.New(hubConfig, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "inventory-"}}
	if err := direct.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	h := hub{Client: direct, namespace: ns.Name, writes: &atomic.Int64{}, counted: &atomic.Int64{}}
	if prepare != nil {
		prepare(h)
	}
	mgr, err := ctrl.NewManager(hubConfig, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		NewClient: func(cfg *rest.Config, o client.Options) (client.Client, error) {
			c, err := client.NewWithWatch(cfg, o)
			if err != nil {
				return nil, err
			}
			return counting(c, h), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	options := Options{Fleet: fleet, Sources: []connection.EnrolmentGetter{fleet}, SkipNameValidation: new(true)}
	for _, m := range modify {
		m(&options)
	}
	err = SetupWithManager(mgr, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("The manager ended with an error: %v", err)
		}
	})
	return h
}

// counting counts the requests that would write, and those for all classes.
func counting(c client.WithWatch, h hub) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*fleetv1alpha1.EnrollmentClassList); ok {
				h.counted.Add(1)
			}
			return c.List(ctx, list, opts...)
		},
		Apply: func(
			ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption,
		) error {
			h.writes.Add(1)
			return c.Apply(ctx, obj, opts...)
		},
		SubResourceApply: func(
			ctx context.Context, c client.Client, sub string, obj runtime.ApplyConfiguration,
			opts ...client.SubResourceApplyOption,
		) error {
			h.writes.Add(1)
			return c.SubResource(sub).Apply(ctx, obj, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			h.writes.Add(1)
			return c.Delete(ctx, obj, opts...)
		},
	})
}

func (h hub) profile(t *testing.T, name string) *inventoryv1alpha1.ClusterProfile {
	t.Helper()
	var p inventoryv1alpha1.ClusterProfile
	err := h.Get(t.Context(), client.ObjectKey{Namespace: h.namespace, Name: name}, &p)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return &p
}

// eventually waits until a condition is met, for long enough that a busy machine makes no difference.
func eventually(t *testing.T, what string, met func() bool) {
	t.Helper()
	const patience = time.Minute
	err := testenv.Poll(t.Context(), patience,
		func(context.Context) (bool, error) { return met(), nil })
	if err != nil {
		t.Fatalf("Not seen within %s: %s", patience, what)
	}
}

func (h hub) cluster(name string, modify ...func(*connection.Cluster)) connection.Cluster {
	c := testCluster()
	c.Name = mcr.ClusterName("capi/" + h.namespace + "/" + name)
	c.Enrolment.Object.Namespace, c.Enrolment.Object.Name = h.namespace, name
	c.Enrolment.Object.UID = types.UID("uid-of-" + name)
	for _, m := range modify {
		m(&c)
	}
	return c
}

func connectedReason(p *inventoryv1alpha1.ClusterProfile) string {
	if p == nil {
		return ""
	}
	if c := meta.FindStatusCondition(p.Status.Conditions, fleetv1alpha1.ConditionConnected); c != nil {
		return c.Reason
	}
	return ""
}

func TestPublishesAClusterThroughItsLife(t *testing.T) {
	fleet := newFakeFleet()
	h := startHub(t, fleet, nil)

	fleet.set(h.cluster("w1"))
	eventually(t, "the profile of a connected cluster", func() bool {
		return connectedReason(h.profile(t, "capi-w1")) == fleetv1alpha1.ReasonConnected
	})
	p := h.profile(t, "capi-w1")
	if got := p.Status.Version.Kubernetes; got != "v1.36.3" {
		t.Errorf("version: want v1.36.3, got %q", got)
	}
	if !isOurs(p) || len(p.OwnerReferences) != 1 || p.OwnerReferences[0].UID != "uid-of-w1" {
		t.Errorf("The profile must bear our marks and belong to the enrolled object, got %v", p.ObjectMeta)
	}
	for _, c := range p.Status.Conditions {
		if c.Status != metav1.ConditionTrue || c.ObservedGeneration != p.Generation {
			t.Errorf("condition %s: want True for generation %d, got %s for %d", c.Type, p.Generation, c.Status, c.ObservedGeneration)
		}
	}

	// The manager writes the status of a profile when its cache has the profile. The cache follows the order of changes,
	// so with that of the second cluster it has the status of the first, and has no reason to write it again.
	published := func(name string) {
		t.Helper()
		fleet.set(h.cluster(name))
		eventually(t, "the profile of "+name, func() bool {
			return connectedReason(h.profile(t, "capi-"+name)) == fleetv1alpha1.ReasonConnected
		})
	}
	published("w2")

	// A reconcile that finds nothing to do cannot be observed, so another cluster shows that the first was reconciled:
	// when its profile exists, no request may have been added for the first one.
	writes := h.writes.Load()
	fleet.notify(h.cluster("w1").Name)
	published("w3")
	if got := h.writes.Load() - writes; got != 2 {
		t.Errorf("One write for the third profile and one for its status: want 2, got %d", got)
	}
	if got := h.profile(t, "capi-w1").ResourceVersion; got != p.ResourceVersion {
		t.Errorf("The first profile was written although nothing changed: %s became %s", p.ResourceVersion, got)
	}

	fleet.set(h.cluster("w1", func(c *connection.Cluster) {
		c.State, c.Reason, c.Message = connection.StateBackoff, fleetv1alpha1.ReasonDialError, "The API server does not answer"
	}))
	eventually(t, "the lost connection", func() bool {
		return connectedReason(h.profile(t, "capi-w1")) == fleetv1alpha1.ReasonDialError
	})
	if got := propertyValue(h.profile(t, "capi-w1").Status.Properties, PropertyClusterUID); got != "cluster-1" {
		t.Errorf("A lost cluster must be remembered: want cluster-1, got %q", got)
	}

	fleet.remove(h.cluster("w1").Name)
	eventually(t, "the removal of the profile", func() bool { return h.profile(t, "capi-w1") == nil })
	if h.profile(t, "capi-w2") == nil {
		t.Error("The other cluster's profile must stay")
	}
}

// Kubernetes deletes a profile with its owner, the enrolled object, while the cluster is still being disconnected. One
// that was created again then was deleted at once, and created again, in a tight loop.
func TestMakesNoProfileForAnEnrolmentThatIsGone(t *testing.T) {
	fleet := newFakeFleet()
	h := startHub(t, fleet, nil)
	fleet.set(h.cluster("w1"))
	eventually(t, "the profile of a connected cluster", func() bool {
		return connectedReason(h.profile(t, "capi-w1")) == fleetv1alpha1.ReasonConnected
	})
	fleet.set(h.cluster("w1", func(c *connection.Cluster) {
		c.State, c.Reason, c.Unenrolled = connection.StateDraining, fleetv1alpha1.ReasonUnenrolled, true
	}))
	eventually(t, "that it is being disconnected", func() bool {
		return connectedReason(h.profile(t, "capi-w1")) == fleetv1alpha1.ReasonUnenrolled
	})

	writes := h.writes.Load()
	if err := h.Delete(t.Context(), h.profile(t, "capi-w1")); err != nil {
		t.Fatal(err)
	}
	// The cache sees the deletion before the profile of another cluster, so the first cluster is enqueued before that one.
	fleet.set(h.cluster("w2"))
	eventually(t, "the profile of another cluster", func() bool {
		return connectedReason(h.profile(t, "capi-w2")) == fleetv1alpha1.ReasonConnected
	})
	if got := h.writes.Load() - writes; got != 2 || h.profile(t, "capi-w1") != nil {
		t.Errorf("want the second profile and its status to be written, and nothing for the first: %d writes", got)
	}

	// After it is enrolled again, it has a profile.
	fleet.set(h.cluster("w1"))
	eventually(t, "the profile of a cluster that is enrolled again", func() bool {
		return connectedReason(h.profile(t, "capi-w1")) == fleetv1alpha1.ReasonConnected
	})
}

func TestPutsBackWhatWasAltered(t *testing.T) {
	fleet := newFakeFleet()
	h := startHub(t, fleet, nil)
	fleet.set(h.cluster("w1"))
	eventually(t, "the profile", func() bool { return connectedReason(h.profile(t, "capi-w1")) != "" })

	alter := func(write func(p *inventoryv1alpha1.ClusterProfile) error) {
		t.Helper()
		// The controller may be writing too.
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return write(h.profile(t, "capi-w1")) })
		if err != nil {
			t.Fatal(err)
		}
	}
	alter(func(p *inventoryv1alpha1.ClusterProfile) error {
		p.Spec.DisplayName = "altered"
		p.Labels["region"] = "eu"
		return h.Update(t.Context(), p)
	})
	eventually(t, "the display name as it was", func() bool { return h.profile(t, "capi-w1").Spec.DisplayName == "w1" })
	if got := h.profile(t, "capi-w1").Labels["region"]; got != "eu" {
		t.Errorf("A label of another user must stay: want eu, got %q", got)
	}

	alter(func(p *inventoryv1alpha1.ClusterProfile) error {
		p.Status.Conditions[0].Status = metav1.ConditionUnknown
		return h.Status().Update(t.Context(), p)
	})
	eventually(t, "the condition as it was", func() bool {
		return h.profile(t, "capi-w1").Status.Conditions[0].Status == metav1.ConditionTrue
	})

	alter(func(p *inventoryv1alpha1.ClusterProfile) error {
		delete(p.Labels, inventoryv1alpha1.LabelClusterManagerKey)
		return h.Update(t.Context(), p)
	})
	eventually(t, "the profile without our label, which is not ours any more, being left alone", func() bool {
		return slices.Contains(h.eventReasons(t, "w1"), fleetv1alpha1.EventClusterProfileConflict)
	})
	p := h.profile(t, "capi-w1")
	if err := h.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a new profile", func() bool {
		now := h.profile(t, "capi-w1")
		return now != nil && now.UID != p.UID && connectedReason(now) == fleetv1alpha1.ReasonConnected
	})
}

func TestRemovesOnlyStaleProfilesOfOurs(t *testing.T) {
	fleet := newFakeFleet()
	fleet.failDescribe(errors.New("the cache is not filled"))
	h := startHub(t, fleet, func(h hub) {
		fleet.mayLeave = map[mcr.ClusterName]bool{h.cluster("leaving").Name: true}
		create := func(name string, modify func(*inventoryv1alpha1.ClusterProfile)) {
			source, object, _ := strings.Cut(name, "-")
			p := &inventoryv1alpha1.ClusterProfile{
				ObjectMeta: metav1.ObjectMeta{
					Namespace:   h.namespace,
					Name:        name,
					Labels:      map[string]string{inventoryv1alpha1.LabelClusterManagerKey: fleetv1alpha1.FieldManager},
					Annotations: map[string]string{fleetv1alpha1.ClusterNameAnnotation: source + "/" + h.namespace + "/" + object},
				},
				Spec: inventoryv1alpha1.ClusterProfileSpec{
					ClusterManager: inventoryv1alpha1.ClusterManager{Name: fleetv1alpha1.FieldManager},
				},
			}
			if modify != nil {
				modify(p)
			}
			if err := h.Create(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		create("capi-stale", nil)
		create("capi-leaving", nil)
		create("capi-expected", nil)
		create("capi-unlabelled", func(p *inventoryv1alpha1.ClusterProfile) { p.Labels = nil })
		create("capi-othermanager", func(p *inventoryv1alpha1.ClusterProfile) { p.Spec.ClusterManager.Name = "other" })
		create("capi-elsewhere", func(p *inventoryv1alpha1.ClusterProfile) {
			p.Annotations[fleetv1alpha1.ClusterNameAnnotation] = "capi/elsewhere/elsewhere"
		})
		create("unknownsource-x", nil)
		fleet.enrol(h.namespace, "expected")
	})

	// While the source cannot answer nothing is removed; a published cluster shows that the manager runs.
	fleet.set(h.cluster("w1"))
	eventually(t, "the profile of a cluster", func() bool { return connectedReason(h.profile(t, "capi-w1")) != "" })
	if h.profile(t, "capi-stale") == nil {
		t.Error("A profile was removed although the source could not say that its cluster is not enrolled")
	}

	// A failure is retried after a while, with increasing delay.
	fleet.failDescribe(nil)
	fleet.notify(h.cluster("stale").Name)
	eventually(t, "the removal of the stale profile", func() bool { return h.profile(t, "capi-stale") == nil })
	for name, reason := range map[string]string{
		"capi-leaving":      "it may have to be offboarded",
		"capi-expected":     "its cluster is enrolled, and will be in the fleet soon",
		"capi-unlabelled":   "it lacks our label",
		"capi-othermanager": "it belongs to another cluster manager",
		"capi-elsewhere":    "it is about a cluster of another namespace",
		"unknownsource-x":   "no source can say that its cluster is not enrolled",
	} {
		if h.profile(t, name) == nil {
			t.Errorf("%s was removed although %s", name, reason)
		}
	}
}

func TestLeavesAForeignProfileAlone(t *testing.T) {
	fleet := newFakeFleet()
	h := startHub(t, fleet, func(h hub) {
		foreign := &inventoryv1alpha1.ClusterProfile{
			ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "capi-w1"},
			Spec: inventoryv1alpha1.ClusterProfileSpec{
				DisplayName: "theirs", ClusterManager: inventoryv1alpha1.ClusterManager{Name: "other"},
			},
		}
		if err := h.Create(t.Context(), foreign); err != nil {
			t.Fatal(err)
		}
	})
	before := h.profile(t, "capi-w1")
	fleet.set(h.cluster("w1"))
	eventually(t, "the event on the enrolled object", func() bool {
		return slices.Contains(h.eventReasons(t, "w1"), fleetv1alpha1.EventClusterProfileConflict)
	})
	fleet.notify(h.cluster("w1").Name)
	// The profile of another cluster shows that this one was reconciled.
	fleet.set(h.cluster("w2"))
	eventually(t, "the profile of another cluster", func() bool {
		return connectedReason(h.profile(t, "capi-w2")) == fleetv1alpha1.ReasonConnected
	})
	if diff := cmp.Diff(before, h.profile(t, "capi-w1")); diff != "" {
		t.Errorf("A foreign profile was written: -before, +after:\n%s", diff)
	}

	if err := h.Delete(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	eventually(t, "our profile once the name is free", func() bool {
		p := h.profile(t, "capi-w1")
		return p != nil && isOurs(p) && connectedReason(p) != ""
	})
	eventually(t, "the event that says so", func() bool {
		return slices.Contains(h.eventReasons(t, "w1"), fleetv1alpha1.EventClusterProfileReleased)
	})
	if got := h.eventReasons(t, "w1"); len(got) != 2 {
		t.Errorf("One event for each transition: want 2, got %v", got)
	}
}

func (h hub) eventReasons(t *testing.T, name string) []string {
	t.Helper()
	var list eventsv1.EventList
	if err := h.List(t.Context(), &list, client.InNamespace(h.namespace)); err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for _, e := range list.Items {
		if e.Regarding.Name == name && e.Regarding.Kind == "Cluster" {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

func TestPublishesRefusedDefinitions(t *testing.T) {
	fleet := newFakeFleet()
	definitions := &Definitions{}
	h := startHub(t, fleet, nil, func(o *Options) { o.Definitions = definitions })
	c := h.cluster("w1")
	const crd = "mysqls.database.acmeco.org"
	fleet.enrol(h.namespace, "w1")
	definitions.Report(c.Name, crd, true, &condition.Error{Reason: "ForeignDefinition", Message: "It belongs to another owner"})
	reason := func() string {
		if p := h.profile(t, "capi-w1"); p != nil {
			if c := meta.FindStatusCondition(p.Status.Conditions, fleetv1alpha1.ConditionKindsServed); c != nil {
				return c.Reason
			}
		}
		return ""
	}
	fleet.set(c)
	eventually(t, "a definition refused before the cluster was seen", func() bool {
		return reason() == fleetv1alpha1.ReasonDefinitionsRefused
	})
	definitions.Report(c.Name, crd, true, nil)
	eventually(t, "the definition being served", func() bool { return reason() == fleetv1alpha1.ReasonAllServed })
	definitions.Report(c.Name, crd, true, &condition.Error{Reason: "DefinitionForbidden"})
	eventually(t, "the definition being refused", func() bool { return reason() == fleetv1alpha1.ReasonDefinitionsRefused })
	definitions.Report(c.Name, crd, false, nil)
	eventually(t, "the definition being forgotten", func() bool { return reason() == fleetv1alpha1.ReasonAllServed })
	if got := definitions.refused[c.Name]; got != nil {
		t.Errorf("Nothing may be kept about a cluster without refused definitions, got %v", got)
	}
}

// knows reports whether any state of a cluster is kept.
func (d *Definitions) knows(name mcr.ClusterName) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, published := d.published[name]
	return published || len(d.refused[name]) > 0
}

// TestForgetsTheDefinitionsOfAClusterThatGoes removes a cluster while one of its definitions is refused, and nothing
// revokes that report: the controller that reported it has lost the cluster as well.
func TestForgetsTheDefinitionsOfAClusterThatGoes(t *testing.T) {
	fleet := newFakeFleet()
	definitions := &Definitions{}
	h := startHub(t, fleet, nil, func(o *Options) { o.Definitions = definitions })
	c := h.cluster("w1")
	kindsServed := func() string {
		if p := h.profile(t, "capi-w1"); p != nil {
			if c := meta.FindStatusCondition(p.Status.Conditions, fleetv1alpha1.ConditionKindsServed); c != nil {
				return c.Reason
			}
		}
		return ""
	}
	fleet.set(c)
	definitions.Report(c.Name, "mysqls.database.acmeco.org", true, &condition.Error{Reason: "ForeignDefinition"})
	eventually(t, "the refused definition", func() bool { return kindsServed() == fleetv1alpha1.ReasonDefinitionsRefused })
	fleet.remove(c.Name)
	eventually(t, "nothing kept about the cluster", func() bool { return !definitions.knows(c.Name) })
	// A report that was already being sent arrives late.
	definitions.Report(c.Name, "mysqls.database.acmeco.org", true, &condition.Error{Reason: "ForeignDefinition"})
	eventually(t, "nothing kept about the cluster", func() bool { return !definitions.knows(c.Name) })
	fleet.set(c)
	eventually(t, "a cluster that came back, of which nothing is known", func() bool { return kindsServed() == fleetv1alpha1.ReasonAllServed })
}

func TestPinsSurviveARestart(t *testing.T) {
	fleet := newFakeFleet()
	h := startHub(t, fleet, nil)
	c := h.cluster("w1", func(c *connection.Cluster) { c.Enrolment.Identifier = "prod" })
	fleet.set(c)
	eventually(t, "the profile", func() bool { return connectedReason(h.profile(t, "capi-w1")) != "" })

	pins, err := NewPins(h.Client).Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := connection.Pin{UID: "cluster-1", Identifier: "prod", ObjectUID: "uid-of-w1", Reason: fleetv1alpha1.ReasonConnected, Kind: h.cluster("w1").Enrolment.Object.GroupVersionKind, Class: "default"}
	if diff := cmp.Diff(want, pins[c.Name]); diff != "" {
		t.Errorf("The pin of a cluster that was connected: -want, +got:\n%s", diff)
	}
}

func TestCountsTheClustersOfAClass(t *testing.T) {
	fleet := newFakeFleet()
	h := startHub(t, fleet, nil)
	class := &fleetv1alpha1.EnrollmentClass{
		ObjectMeta: metav1.ObjectMeta{Name: h.namespace},
		Spec:       fleetv1alpha1.EnrollmentClassSpec{Agent: fleetv1alpha1.AgentSpec{Mode: fleetv1alpha1.AgentModeDisabled}},
	}
	if err := h.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Delete(context.WithoutCancel(t.Context()), class) })
	reason := func() string {
		if err := h.Get(t.Context(), client.ObjectKeyFromObject(class), class); err != nil {
			t.Fatal(err)
		}
		if c := meta.FindStatusCondition(class.Status.Conditions, fleetv1alpha1.ConditionClustersConnected); c != nil {
			return c.Reason
		}
		return ""
	}
	eventually(t, "a class without clusters", func() bool { return reason() == fleetv1alpha1.ReasonNoClusters })

	inClass := func(c *connection.Cluster) { c.Enrolment.Class = class.Name }
	fleet.set(h.cluster("w1", inClass))
	eventually(t, "a class with one cluster", func() bool { return reason() == fleetv1alpha1.ReasonAllConnected })
	fleet.set(h.cluster("w2", inClass, func(c *connection.Cluster) { c.State = connection.StatePending }))
	eventually(t, "a class with a cluster that is not connected", func() bool {
		return reason() == fleetv1alpha1.ReasonClustersNotConnected
	})
	if class.Status.EnrolledClusters != 2 || class.Status.ConnectedClusters != 1 {
		t.Errorf("want 2 enrolled and 1 connected, got %d and %d",
			class.Status.EnrolledClusters, class.Status.ConnectedClusters)
	}
	// A manager that was just started knows no clusters, and leaves the class as it is.
	restarted := newFakeFleet()
	restarted.enrol(h.namespace, "w1")
	restarted.enrol(h.namespace, "w2")
	version := class.ResourceVersion
	again := startHub(t, restarted, nil)
	eventually(t, "the second manager counting for the first time", func() bool { return again.counted.Load() > 0 })
	// To the first manager it is enrolled, too, or it would remove what the second one publishes.
	fleet.enrol(again.namespace, "other")
	restarted.set(again.cluster("other"))
	eventually(t, "the second manager's own work", func() bool {
		return connectedReason(again.profile(t, "capi-other")) != ""
	})
	// It counts once at a time: when it counts because of that profile, the first count has ended.
	eventually(t, "the second manager counting again", func() bool { return again.counted.Load() > 1 })
	if reason(); class.ResourceVersion != version {
		t.Errorf("The class was written by a manager that has no clusters yet: %v", class.Status)
	}

	fleet.remove(h.cluster("w2").Name)
	fleet.set(h.cluster("w1"))
	eventually(t, "a class that its clusters left", func() bool { return reason() == fleetv1alpha1.ReasonNoClusters })
}
