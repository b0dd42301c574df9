// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection/connectiontest"
)

func TestConnectsAndReconciles(t *testing.T) {
	s := realServer(t, 0)
	f := newFrontend(t, s)
	src := newFakeSource()
	h := newHarness(t, src)
	src.set("a", f.kubeconfig(t, s.token(t)))
	h.waitFor(t, "a", StateConnected, fleetv1alpha1.ReasonConnected)
	h.waitReconciled(t, "a", "masthead")

	c, ok := h.Lookup(clusterName("a"))
	if !ok || c.UID != s.uid || c.EffectiveIdentifier() != s.uid || c.ControlPlaneHealthy != metav1.ConditionTrue ||
		!strings.HasPrefix(c.KubernetesVersion, "v1.") {
		t.Errorf("unexpected snapshot %+v", c)
	}
	if c.Access == nil || !strings.HasPrefix(c.Access.Endpoint.Server, "https://127.0.0.1:") || len(c.Access.Endpoint.Authorities) == 0 ||
		c.Access.Secret != (SecretKey{Namespace: "ns", Name: "a", Key: "value"}) {
		t.Errorf("want how others reach the cluster, got %+v", c.Access)
	}
	if got, ok := h.ByIdentifier(s.uid); !ok || got.Name != c.Name {
		t.Errorf("ByIdentifier: want %q, got %q %t", c.Name, got.Name, ok)
	}
	if _, err := h.Get(t.Context(), "fake/ns/unknown"); !errors.Is(err, mcr.ErrClusterNotFound) {
		t.Errorf("Get of an unknown cluster: want ErrClusterNotFound, got %v", err)
	}
	cl, err := h.Get(t.Context(), c.Name)
	if err != nil {
		t.Fatal(err)
	}
	if cl.GetConfig().BearerToken != "" {
		t.Error("the token is in the rest.Config")
	}
	if cl.GetConfig().WarningHandlerWithContext == nil {
		t.Error("what the cluster says in a header would be the message of a line of the log")
	}
	if err := cl.GetClient().Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "default"}, &corev1.ConfigMap{}); !isNotFound(err) {
		t.Errorf("ConfigMaps are read live: want NotFound, got %v", err)
	}
	if err := cl.GetCache().List(t.Context(), &corev1.PodList{}); !errors.Is(err, errNoCache) {
		t.Errorf("a kind must not be kept because it is read: got %v", err)
	}
	if _, err := cl.GetCache().GetInformer(t.Context(), &corev1.Secret{}); !errors.Is(err, errNoCache) {
		t.Errorf("an informer, which keeps whole objects without a bound, must be refused: got %v", err)
	}
	if err := h.IndexField(t.Context(), &corev1.Pod{}, "x", nil); !errors.Is(err, errNoCache) {
		t.Errorf("an index of a cache that does not exist must be refused: got %v", err)
	}
	for _, e := range h.events.list() {
		if strings.Contains(e, "Warning") {
			t.Errorf("unexpected event %s", e)
		}
	}
	if n := f.count(func(line string) bool { return line == "GET /apis" || line == "GET /api" }); n > 0 {
		t.Errorf("what a cluster serves must not be read whole to know a few kinds, got %d requests", n)
	}
}

func TestWhatControllersShareIsWatchedOnce(t *testing.T) {
	s := realServer(t, 0)
	f := newFrontend(t, s)
	src := newFakeSource()
	lists := limits.NewSemaphore[any](1, 0)
	h := newHarness(t, src, func(o *Options) { o.Lists = lists })
	src.set("a", f.kubeconfig(t, s.token(t)))
	h.waitFor(t, "a", StateConnected, fleetv1alpha1.ReasonConnected)
	cl, err := h.Get(t.Context(), clusterName("a"))
	if err != nil {
		t.Fatal(err)
	}
	kind := multicluster.OwnedDefinitions()
	first, err := multicluster.WatchOptions(cl)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		o, err := multicluster.WatchOptions(cl)
		if err != nil {
			t.Fatal(err)
		}
		if o.Client != first.Client || o.MetadataClient != first.MetadataClient {
			t.Error("want all Watchers of a cluster to share its clients")
		}
		if o.Lists != lists {
			t.Error("want all Watchers of all clusters to share one gate for lists")
		}
		o.Handler = func(kindwatch.Event) {}
		w, err := kindwatch.New(o)
		if err != nil {
			t.Fatal(err)
		}
		w.Set("test", kind)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Start(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		if err := w.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if state, message := w.State(kind); state != kindwatch.StateSynced {
			t.Fatalf("want the definitions to be known, got %s (%s)", state, message)
		}
	}
	if n := f.count(func(line string) bool {
		return strings.HasPrefix(line, "WATCH ") && strings.HasSuffix(line, "/customresourcedefinitions")
	}); n != 1 {
		t.Errorf("want one watch for all three, got %d", n)
	}
}

func TestTokenRotatedTwentyTimesRestartsNoInformerAndLosesNoEvent(t *testing.T) {
	s := realServer(t, 0)
	f := newFrontend(t, s)
	src := newFakeSource()
	h := newHarness(t, src)
	token := s.token(t)
	f.accept(token)
	src.set("a", f.kubeconfig(t, token))
	h.waitReconciled(t, "a", "masthead")
	before := f.watchRequests()
	for i := range 20 {
		token = s.token(t)
		// The Secret is changed first: if the old token were refused before there is a new one, the connection would rightly
		// be lost.
		src.setQuietly("a", f.kubeconfig(t, token))
		f.accept(token) // The old one is refused from here on.
		src.set("a", f.kubeconfig(t, token))
		name := fmt.Sprintf("rotation-%d", i)
		s.createObject(t, name)
		h.waitReconciled(t, "a", name)
		connectiontest.Eventually(t, "the new token is in use", func() bool {
			cl, err := h.Get(t.Context(), clusterName("a"))
			if err != nil {
				t.Fatalf("the cluster was disengaged: %v", err)
			}
			return cl.GetAPIReader().Get(t.Context(), client.ObjectKey{Name: "default"}, &corev1.Namespace{}) == nil
		})
	}
	if got := f.watchRequests(); got != before {
		t.Errorf("lists and watches: want %d as before the rotations, got %d", before, got)
	}
	if got := len(h.engagements("a")); got != 1 {
		t.Errorf("engagements: want 1, got %d", got)
	}
}

func TestTokenThatIsNotAcceptedIsNotUsed(t *testing.T) {
	s := realServer(t, 0)
	f := newFrontend(t, s)
	src := newFakeSource()
	h := newHarness(t, src)
	good := s.token(t)
	f.accept(good)
	src.set("a", f.kubeconfig(t, good))
	h.waitFor(t, "a", StateConnected, "")
	src.set("a", f.kubeconfig(t, "bad-token"))
	connectiontest.Eventually(t, "the bad token is reported", func() bool {
		return strings.Contains(strings.Join(h.events.list(), "\n"), "a Warning Unauthorized The changed kubeconfig is not used")
	})
	h.waitFor(t, "a", StateConnected, "")
	better := s.token(t)
	f.accept(good, better)
	src.set("a", f.kubeconfig(t, better))
	f.accept(better)
	connectiontest.Eventually(t, "the better token is in use", func() bool {
		cl, err := h.Get(t.Context(), clusterName("a"))
		return err == nil && cl.GetAPIReader().Get(t.Context(), client.ObjectKey{Name: "default"}, &corev1.Namespace{}) == nil
	})
	if got := len(h.engagements("a")); got != 1 {
		t.Errorf("engagements: want 1, got %d", got)
	}
}

func TestUnauthorizedReadsTheSecretAgain(t *testing.T) {
	s := realServer(t, 0)
	f := newFrontend(t, s)
	src := newFakeSource()
	h := newHarness(t, src)
	first, second := s.token(t), s.token(t)
	f.accept(first)
	src.set("a", f.kubeconfig(t, first))
	h.waitFor(t, "a", StateConnected, "")

	// The Secret was changed, and the watch has not reported that yet.
	src.setQuietly("a", f.kubeconfig(t, second))
	f.accept(second)
	connectiontest.Eventually(t, "the new token is in use", func() bool {
		cl, err := h.Get(t.Context(), clusterName("a"))
		if err != nil {
			t.Fatalf("the cluster was disengaged: %v", err)
		}
		return cl.GetAPIReader().Get(t.Context(), client.ObjectKey{Name: "default"}, &corev1.Namespace{}) == nil
	})

	// There is no newer token: disengaged with a reason.
	f.accept()
	h.waitFor(t, "a", StateBackoff, fleetv1alpha1.ReasonUnauthorized)
	if _, err := h.Get(t.Context(), clusterName("a")); !errors.Is(err, multicluster.ErrClusterNotConnected) {
		t.Errorf("Get: want ErrClusterNotConnected, got %v", err)
	}
	third := s.token(t)
	f.accept(third)
	src.set("a", f.kubeconfig(t, third))
	h.waitFor(t, "a", StateConnected, "")
	if got := len(h.engagements("a")); got != 2 {
		t.Errorf("engagements: want 2, got %d", got)
	}
}

func TestEndpointChangeLeavesNoGap(t *testing.T) {
	s := realServer(t, 0)
	old, next := newFrontend(t, s), newFrontend(t, s)
	src := newFakeSource()
	h := newHarness(t, src, func(o *Options) { o.ProbeTimeout = 2 * time.Second })
	src.set("a", old.kubeconfig(t, s.token(t)))
	h.waitReconciled(t, "a", "masthead")
	first := h.engagements("a")[0]

	// A new endpoint does not answer: the serving connection stays.
	src.set("a", connectiontest.Kubeconfig(t, connectiontest.BlackHole(t), nil, s.token(t)))
	connectiontest.Eventually(t, "the failure is reported", func() bool {
		return strings.Contains(strings.Join(h.events.list(), "\n"), "a Warning DialError The changed kubeconfig is not used")
	})
	if first.ctx.Err() != nil {
		t.Fatal("the connection that served was ended")
	}

	var gaps atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for ctx.Err() == nil {
			if _, err := h.Get(ctx, clusterName("a")); err != nil {
				gaps.Add(1)
			}
			if first.ctx.Err() != nil && len(h.engagements("a")) < 2 {
				gaps.Add(1)
			}
		}
	}()
	src.set("a", next.kubeconfig(t, s.token(t)))
	for i := range 5 {
		name := fmt.Sprintf("moving-%d", i)
		s.createObject(t, name)
		h.waitReconciled(t, "a", name)
	}
	connectiontest.Eventually(t, "the old connection is ended", func() bool { return first.ctx.Err() != nil })
	cancel()
	<-watched
	if gaps.Load() != 0 {
		t.Errorf("there were %d moments without a connection", gaps.Load())
	}
	if cause := context.Cause(first.ctx); !errors.Is(cause, errSucceeded) {
		t.Errorf("cause: want %v, got %v", errSucceeded, cause)
	}
	cl, err := h.Get(t.Context(), clusterName("a"))
	if err != nil || cl != h.engagements("a")[1].cl || cl.GetConfig().Host != strings.ToLower(next.URL) {
		t.Errorf("Get does not return the new connection: %v", err)
	}
	// The context of a connection ends a moment before requests are blocked.
	connectiontest.Eventually(t, "a client of the old connection gets ErrClusterNotConnected", func() bool {
		err = first.cl.GetAPIReader().Get(t.Context(), client.ObjectKey{Name: "default"}, &corev1.Namespace{})
		return errors.Is(err, multicluster.ErrClusterNotConnected)
	}, func() any { return err })
	s.createObject(t, "moved")
	h.waitReconciled(t, "a", "moved")
}

func TestDegradedFailsWritesHoldsWorkAndRecoversWithoutRestart(t *testing.T) {
	s := realServer(t, 0)
	f := newFrontend(t, s)
	src := newFakeSource()
	// Long enough that no probe fails by chance after the API server answers again.
	h := newHarness(t, src, func(o *Options) { o.ProbeTimeout, o.ProbeFailureThreshold = 5*time.Second, 1000 })
	src.set("a", f.kubeconfig(t, s.token(t)))
	h.waitReconciled(t, "a", "masthead")
	before := f.watchRequests()
	cl, err := h.Get(t.Context(), clusterName("a"))
	if err != nil {
		t.Fatal(err)
	}
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "never"}}
	// The client knows from now on how the kind is served.
	if err := cl.GetClient().Get(t.Context(), client.ObjectKeyFromObject(obj), &corev1.ConfigMap{}); !isNotFound(err) {
		t.Fatal(err)
	}
	f.setHang(true)
	h.waitFor(t, "a", StateDegraded, fleetv1alpha1.ReasonDialError)
	if h.gate.IsOpen(clusterName("a")) {
		t.Error("the gate is open though the cluster is degraded")
	}
	for what, err := range map[string]error{
		"Create": cl.GetClient().Create(t.Context(), obj),
		"Patch":  cl.GetClient().Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte("{}"))),
		"Delete": cl.GetClient().Delete(t.Context(), obj),
	} {
		if !errors.Is(err, multicluster.ErrClusterNotConnected) {
			t.Errorf("%s while degraded: want ErrClusterNotConnected, got %v", what, err)
		}
	}
	f.setHang(false)
	h.waitFor(t, "a", StateConnected, "")
	if !h.gate.IsOpen(clusterName("a")) {
		t.Error("the gate is closed though the cluster is connected")
	}
	if got := f.watchRequests(); got != before {
		t.Errorf("lists and watches: want %d as before, got %d", before, got)
	}
	if err := cl.GetClient().Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "recovered"}}); err != nil {
		t.Errorf("writes go on: %v", err)
	}
	t.Cleanup(func() {
		_ = s.client.CoreV1().ServiceAccounts("default").Delete(context.Background(), "recovered", metav1.DeleteOptions{})
	})
	h.waitReconciled(t, "a", "recovered")
}

func TestDuplicatesAreRefusedAndTriedAgainWhenTheHolderGoes(t *testing.T) {
	s := realServer(t, 0)
	f := newFrontend(t, s)
	src := newFakeSource()
	h := newHarness(t, src, func(o *Options) { o.BackoffBase, o.BackoffMax = DefaultBackoffMax, DefaultBackoffMax })
	src.set("a", f.kubeconfig(t, s.token(t)))
	h.waitFor(t, "a", StateConnected, "")
	src.set("b", f.kubeconfig(t, s.token(t)))
	h.waitFor(t, "b", StateBackoff, fleetv1alpha1.ReasonDuplicateCluster)
	if c, _ := h.Lookup(clusterName("b")); !strings.Contains(c.Message, `"fake/ns/a"`) {
		t.Errorf("the message does not name the holder: %s", c.Message)
	}
	src.remove("a")
	h.waitFor(t, "b", StateConnected, "")
	if _, ok := h.Lookup(clusterName("a")); ok {
		t.Error("a is still listed")
	}
	src.set("a", f.kubeconfig(t, s.token(t)))
	h.waitFor(t, "a", StateBackoff, fleetv1alpha1.ReasonDuplicateCluster)
}

func TestIdentifierConflictDrainsTheOneThatTakesIt(t *testing.T) {
	s0, s1 := realServer(t, 0), realServer(t, 1)
	f0, f1 := newFrontend(t, s0), newFrontend(t, s1)
	src := newFakeSource()
	var pretended atomic.Bool
	h := newHarnessWith(t, src, func(p *Provider) {
		p.Subscribe(func(name mcr.ClusterName) {
			if c, _ := p.Lookup(name); name == clusterName("b") && c.EffectiveIdentifier() == "blue" {
				pretended.Store(true)
			}
		})
	})
	src.set("a", f0.kubeconfig(t, s0.token(t)), func(e *Enrolment) { e.Identifier = "blue" })
	src.set("b", f1.kubeconfig(t, s1.token(t)))
	h.waitFor(t, "a", StateConnected, "")
	h.waitFor(t, "b", StateConnected, "")
	src.change("b", func(e *Enrolment) { e.Identifier = "blue" })
	h.waitFor(t, "b", StateBackoff, fleetv1alpha1.ReasonDuplicateCluster)
	if pretended.Load() {
		t.Error("b acted under an identifier that was refused, while its work was given time to end")
	}
	src.change("b", func(e *Enrolment) { e.Identifier = "green" })
	h.waitFor(t, "b", StateConnected, "")
	if c, ok := h.ByIdentifier("green"); !ok || c.Name != clusterName("b") {
		t.Errorf("ByIdentifier: got %v %t", c.Name, ok)
	}
	h.waitFor(t, "a", StateConnected, "")
}

func TestIdentifierInTheFormOfAUIDIsRefused(t *testing.T) {
	s0, s1 := realServer(t, 0), realServer(t, 1)
	f0, f1 := newFrontend(t, s0), newFrontend(t, s1)
	src := newFakeSource()
	var pretended atomic.Bool
	h := newHarnessWith(t, src, func(p *Provider) {
		p.Subscribe(func(name mcr.ClusterName) {
			if c, _ := p.Lookup(name); name == clusterName("b") && strings.EqualFold(c.EffectiveIdentifier(), s0.uid) {
				pretended.Store(true)
			}
		})
	}, func(o *Options) { o.NotReadyGracePeriod = time.Hour })
	src.set("b", f1.kubeconfig(t, s1.token(t)))
	h.waitFor(t, "b", StateConnected, "")
	// The cluster with that UID may not be enrolled yet: it must not matter that the UID is free.
	for _, id := range []string{s0.uid, strings.ToUpper(s0.uid), strings.ReplaceAll(s0.uid, "-", "")} {
		src.change("b", func(e *Enrolment) { e.Identifier = id })
		h.waitFor(t, "b", StatePending, fleetv1alpha1.ReasonBadIdentifier)
		if _, ok := h.ByIdentifier(id); ok {
			t.Errorf("a cluster holds the identifier %q", id)
		}
		src.change("b", func(e *Enrolment) { e.Identifier = "" })
		h.waitFor(t, "b", StateConnected, "")
	}
	if pretended.Load() {
		t.Error("b acted under the UID of another cluster")
	}
	src.set("a", f0.kubeconfig(t, s0.token(t)))
	h.waitFor(t, "a", StateConnected, "")
}

func TestPinIsValid(t *testing.T) {
	const a, b = "0b7e9a4c-9d1f-4e0a-8a53-2f6c1d7e8b90", "1b7e9a4c-9d1f-4e0a-8a53-2f6c1d7e8b90"
	for p, want := range map[Pin]bool{
		{UID: a}: true, {UID: a, Identifier: a}: true, {UID: a, Identifier: "blue"}: true,
		{}: false, {UID: "blue"}: false, {UID: a, Identifier: b}: false,
	} {
		if got := p.valid(); got != want {
			t.Errorf("%+v: want %t, got %t", p, want, got)
		}
	}
}

type pins map[mcr.ClusterName]Pin

func (p pins) Load(context.Context) (map[mcr.ClusterName]Pin, error) { return p, nil }

func TestPinsHoldAcrossARestart(t *testing.T) {
	s0, s1 := realServer(t, 0), realServer(t, 1)
	f0, f1 := newFrontend(t, s0), newFrontend(t, s1)
	src := newFakeSource()
	// a held the cluster, and cannot be reached now; c's object was deleted; d led to another cluster.
	src.set("a", connectiontest.Kubeconfig(t, connectiontest.BlackHole(t), nil, "x"))
	src.set("b", f0.kubeconfig(t, s0.token(t)))
	src.set("d", f1.kubeconfig(t, s1.token(t)))
	h := newHarness(t, src, func(o *Options) {
		o.ProbeTimeout = 2 * time.Second
		o.Pins = pins{clusterName("a"): {UID: s0.uid}, clusterName("c"): {UID: s1.uid}, clusterName("d"): {UID: "0b7e9a4c-9d1f-4e0a-8a53-2f6c1d7e8b90"}, "other/ns/x": {UID: "x"}}
	})
	h.waitFor(t, "b", StateBackoff, fleetv1alpha1.ReasonDuplicateCluster)
	h.waitFor(t, "d", StateBackoff, fleetv1alpha1.ReasonClusterIdentityChanged)
	src.set("e", f1.kubeconfig(t, s1.token(t)))
	h.waitFor(t, "e", StateConnected, "")
	src.remove("a")
	h.waitFor(t, "b", StateConnected, "")
}

// TestRestartIsNoNews starts with what the hub recorded of three clusters. Only what differs from that is an event.
func TestRestartIsNoNews(t *testing.T) {
	s := realServer(t, 0)
	f := newFrontend(t, s)
	src := newFakeSource()
	silent := connectiontest.BlackHole(t)
	src.set("same", f.kubeconfig(t, s.token(t)))
	src.set("gone", connectiontest.Kubeconfig(t, silent, nil, "x"))
	src.set("another", connectiontest.Kubeconfig(t, silent, nil, "x"))
	pin := func(name, uid, reason string) Pin {
		return Pin{UID: uid, ObjectUID: types.UID("object-" + name), Reason: reason}
	}
	const uid = "0b7e9a4c-9d1f-4e0a-8a53-2f6c1d7e8b9"
	h := newHarness(t, src, func(o *Options) {
		o.ProbeTimeout = 2 * time.Second
		o.Pins = pins{
			clusterName("same"): pin("same", s.uid, fleetv1alpha1.ReasonConnected),
			clusterName("gone"): pin("gone", uid+"1", fleetv1alpha1.ReasonConnected),
			// The pin is of an earlier object of the name.
			clusterName("another"): pin("earlier", uid+"2", fleetv1alpha1.ReasonDialError),
		}
	})
	h.waitFor(t, "same", StateConnected, fleetv1alpha1.ReasonConnected)
	for _, name := range []string{"gone", "another"} {
		h.waitFor(t, name, StateBackoff, fleetv1alpha1.ReasonDialError)
	}
	f.setHang(true)
	h.waitFor(t, "same", StateDegraded, "")
	f.setHang(false)
	h.waitFor(t, "same", StateConnected, "")
	connectiontest.Eventually(t, "what changed is announced", func() bool {
		return slices.ContainsFunc(h.events.list(), func(e string) bool { return strings.HasPrefix(e, "same Normal Connected") })
	})
	first := map[string]string{}
	for _, e := range h.events.list() {
		words := strings.Fields(e)
		if _, ok := first[words[0]]; !ok {
			first[words[0]] = words[2]
		}
	}
	if first["same"] == fleetv1alpha1.ReasonConnected {
		t.Error("a cluster that is connected as before has an event")
	}
	for _, name := range []string{"gone", "another"} {
		if first[name] != fleetv1alpha1.ReasonDialError {
			t.Errorf("%s: want the event %s, got %q", name, fleetv1alpha1.ReasonDialError, first[name])
		}
	}
}

func TestHubItselfIsRefused(t *testing.T) {
	s := realServer(t, 0)
	f := newFrontend(t, s)
	src := newFakeSource()
	h := newHarness(t, src, func(o *Options) { o.HubUID = s.uid })
	src.set("a", f.kubeconfig(t, s.token(t)))
	h.waitFor(t, "a", StateBackoff, fleetv1alpha1.ReasonHubItself)
}

func TestRecreatedObjectIsNeverServedByTheOldConnection(t *testing.T) {
	s0, s1 := realServer(t, 0), realServer(t, 1)
	f0, f1 := newFrontend(t, s0), newFrontend(t, s1)
	src := newFakeSource()
	h := newHarness(t, src)
	src.set("a", f0.kubeconfig(t, s0.token(t)))
	h.waitReconciled(t, "a", "masthead")
	old := h.engagements("a")[0]
	src.set("a", f1.kubeconfig(t, s1.token(t)), func(e *Enrolment) { e.Object.UID = "recreated" })
	connectiontest.Eventually(t, "the new cluster is engaged", func() bool { return len(h.engagements("a")) == 2 })
	if old.ctx.Err() == nil {
		t.Error("the old connection lives though the new one is engaged")
	}
	h.waitFor(t, "a", StateConnected, "")
	cl, err := h.Get(t.Context(), clusterName("a"))
	if err != nil || cl != h.engagements("a")[1].cl {
		t.Errorf("Get: %v", err)
	}
	if c, _ := h.Lookup(clusterName("a")); c.UID != s1.uid {
		t.Errorf("UID: want %s, got %s", s1.uid, c.UID)
	}
}

func TestAnotherClusterUnderTheSameObjectIsRefused(t *testing.T) {
	s0, s1 := realServer(t, 0), realServer(t, 1)
	f0, f1 := newFrontend(t, s0), newFrontend(t, s1)
	src := newFakeSource()
	h := newHarness(t, src, func(o *Options) { o.ProbeTimeout = 2 * time.Second })
	src.set("a", f0.kubeconfig(t, s0.token(t)))
	h.waitFor(t, "a", StateConnected, "")
	src.set("a", f1.kubeconfig(t, s1.token(t)))
	connectiontest.Eventually(t, "it is reported", func() bool {
		return strings.Contains(strings.Join(h.events.list(), "\n"), "a Warning ClusterIdentityChanged The changed kubeconfig is not used")
	})
	if got := len(h.engagements("a")); got != 1 {
		t.Errorf("engagements: want 1, got %d", got)
	}
	f0.setHang(true) // The serving cluster does not answer any more.
	h.waitFor(t, "a", StateBackoff, fleetv1alpha1.ReasonClusterIdentityChanged)
}

func TestLabelRemovedAndPutBack(t *testing.T) {
	s := realServer(t, 0)
	f := newFrontend(t, s)
	src := newFakeSource()
	h := newHarness(t, src)
	kubeconfig := f.kubeconfig(t, s.token(t))
	src.set("a", kubeconfig)
	h.waitReconciled(t, "a", "masthead")
	first := h.engagements("a")[0]

	// It is enrolled again while work still runs: the same connection stays.
	h.blockObject("slow")
	s.createObject(t, "slow")
	connectiontest.Eventually(t, "a reconcile is in flight", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.waited
	})
	src.remove("a")
	h.waitFor(t, "a", StateDraining, fleetv1alpha1.ReasonUnenrolled)
	if c, _ := h.Lookup(clusterName("a")); !c.Unenrolled {
		t.Error("nothing may be made for the enrolled object, which may be gone: want it to be known as unenrolled")
	}
	src.set("a", kubeconfig)
	h.waitFor(t, "a", StateConnected, "")
	if c, _ := h.Lookup(clusterName("a")); c.Unenrolled {
		t.Error("it is enrolled again, and known as unenrolled")
	}
	h.unblock()
	h.waitReconciled(t, "a", "slow")
	if first.ctx.Err() != nil || len(h.engagements("a")) != 1 {
		t.Error("a new connection was made although the drain was cancelled")
	}

	// It is enrolled again after the drain: there is a new connection.
	src.remove("a")
	connectiontest.Eventually(t, "it is disengaged", func() bool { _, ok := h.Lookup(clusterName("a")); return !ok && first.ctx.Err() != nil })
	if _, err := h.Get(t.Context(), clusterName("a")); !errors.Is(err, mcr.ErrClusterNotFound) {
		t.Errorf("Get: want ErrClusterNotFound, got %v", err)
	}
	src.set("a", kubeconfig)
	h.waitFor(t, "a", StateConnected, "")
	s.createObject(t, "again")
	h.waitReconciled(t, "a", "again")
}

func TestPausedNotReadyAndDeleting(t *testing.T) {
	s := realServer(t, 0)
	f := newFrontend(t, s)
	src := newFakeSource()
	// The clock stands still: the test decides when the grace period is over, regardless of how slow the checks are.
	clock := testingclock.NewFakePassiveClock(time.Now())
	h := newHarness(t, src, func(o *Options) { o.Clock, o.NotReadyGracePeriod = clock, time.Hour })
	endGracePeriod := func() {
		clock.SetTime(clock.Now().Add(2 * time.Hour))
		src.wake("a")
	}
	isKept := func(because string) {
		t.Helper()
		connectiontest.Eventually(t, "it is kept at first, though: "+because, func() bool {
			c, _ := h.Lookup(clusterName("a"))
			return c.State == StateConnected && strings.Contains(c.Message, because)
		})
	}
	src.set("a", f.kubeconfig(t, s.token(t)), func(e *Enrolment) { e.Paused = true })
	h.waitFor(t, "a", StatePending, fleetv1alpha1.ReasonPaused)
	src.change("a", func(e *Enrolment) { e.Paused = false })
	h.waitFor(t, "a", StateConnected, "")
	src.change("a", func(e *Enrolment) { e.Deleting = true })
	connectiontest.Eventually(t, "it is seen as deleting", func() bool {
		c, _ := h.Lookup(clusterName("a"))
		return c.Enrolment.Deleting && c.State == StateConnected
	})
	src.change("a", func(e *Enrolment) {
		e.Ready, e.NotReadyReason, e.NotReadyMessage = false, fleetv1alpha1.ReasonNotReady, "Being rebuilt"
	})
	isKept("Being rebuilt")
	endGracePeriod()
	h.waitFor(t, "a", StatePending, fleetv1alpha1.ReasonNotReady)
	src.change("a", func(e *Enrolment) { e.Ready = true })
	h.waitFor(t, "a", StateConnected, "")
	src.change("a", func(e *Enrolment) { e.CredentialsVersion = "" })
	isKept("There is no Secret")
	endGracePeriod()
	h.waitFor(t, "a", StatePending, fleetv1alpha1.ReasonNoCredentials)
}

func TestBadKubeconfigIsReportedAndWhatServesIsKept(t *testing.T) {
	s := realServer(t, 0)
	f := newFrontend(t, s)
	src := newFakeSource()
	h := newHarness(t, src)
	src.set("a", []byte("nonsense"))
	h.waitFor(t, "a", StateBackoff, fleetv1alpha1.ReasonBadKubeconfig)
	src.set("a", f.kubeconfig(t, s.token(t)))
	h.waitFor(t, "a", StateConnected, "")
	src.set("a", []byte("nonsense"))
	connectiontest.Eventually(t, "it is reported", func() bool {
		return strings.Contains(strings.Join(h.events.list(), "\n"), "a Warning BadKubeconfig The changed kubeconfig is not used")
	})
	h.waitFor(t, "a", StateConnected, "")
}

func TestRedirectsAreRefusedAndTheTokenStaysHome(t *testing.T) {
	s := realServer(t, 0)
	f, thief := newFrontend(t, s), newFrontend(t, s)
	src := newFakeSource()
	h := newHarness(t, src)
	src.set("a", f.kubeconfig(t, s.token(t)))
	h.waitFor(t, "a", StateConnected, "")
	f.setAnswer(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/namespaces/default") {
			http.Redirect(w, r, thief.URL+r.URL.Path, http.StatusTemporaryRedirect)
			return true
		}
		return false
	})
	cl, err := h.Get(t.Context(), clusterName("a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := cl.GetAPIReader().Get(t.Context(), client.ObjectKey{Name: "default"}, &corev1.Namespace{}); !errors.Is(err, limits.ErrRefused) {
		t.Errorf("want %v, got %v", limits.ErrRefused, err)
	}
	if n := thief.count(func(string) bool { return true }); n != 0 {
		t.Errorf("%d requests went to another host", n)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, thief.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := cl.GetHTTPClient().Do(req); err == nil {
		_ = resp.Body.Close()
		t.Error("a request to another host was sent")
	}
}

func isNotFound(err error) bool { return client.IgnoreNotFound(err) == nil && err != nil }
