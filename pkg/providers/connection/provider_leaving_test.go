// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/providers/connection/connectiontest"
)

// leaver is a manager that offboards clusters with a write.
type leaver struct {
	*harness
	wrote atomic.Int32
	hold  chan struct{} // closed when offboarding may end
}

func newLeaver(t *testing.T, src *fakeSource, change ...func(*Options)) *leaver {
	t.Helper()
	l := &leaver{hold: make(chan struct{})}
	change = append([]func(*Options){func(o *Options) { o.Hub = hubidentity.Hub{ID: "me", Name: "hub"} }}, change...)
	l.harness = newHarnessWith(t, src, func(p *Provider) {
		p.OnOffboard(func(ctx context.Context, name mcr.ClusterName) error {
			cl, err := l.Get(ctx, name)
			if err != nil {
				return err
			}
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "offboarded-"}}
			if err := cl.GetClient().Create(ctx, account); err != nil {
				return err
			}
			l.wrote.Add(1)
			select {
			case <-l.hold:
			case <-ctx.Done():
			}
			return nil
		})
	}, change...)
	return l
}

// released reports whether the marker was written again after the cluster was claimed.
func released(f *frontend) bool {
	return f.count(func(line string) bool {
		return strings.HasPrefix(line, "PUT ") && strings.HasSuffix(line, fleetv1alpha1.HubMarkerName)
	}) > 0
}

// TestOffboardingSurvivesARestart un-enrols a cluster, and ends the manager in the middle.
func TestOffboardingSurvivesARestart(t *testing.T) {
	f, src := markedServer(t), newFakeSource()
	first := newLeaver(t, src)
	src.set("a", f.kubeconfig(t, "token"))
	first.waitFor(t, "a", StateConnected, "")
	src.with("a", func(e *entry) { e.unenrolled = true })
	src.wake("a")
	connectiontest.Eventually(t, "it is being offboarded", func() bool { return first.wrote.Load() == 1 })
	first.stop()
	if released(f) {
		t.Fatal("want it not to be released yet")
	}

	second := newLeaver(t, src, func(o *Options) {
		o.Pins = pins{clusterName("a"): {UID: fakeUID, Identifier: fakeUID, ObjectUID: "object-a", Class: "default"}}
	})
	if !second.MayLeave(clusterName("a")) {
		if _, there := second.Lookup(clusterName("a")); !there {
			t.Error("want it in the fleet once it is clear that it leaves")
		}
	}
	connectiontest.Eventually(t, "it is offboarded again", func() bool { return second.wrote.Load() == 1 })
	second.waitFor(t, "a", StateDraining, fleetv1alpha1.ReasonUnenrolled)
	if second.gate.IsOpen(clusterName("a")) {
		t.Error("want no work of the cluster to run")
	}
	close(second.hold)
	connectiontest.Eventually(t, "it is gone", func() bool { _, there := second.Lookup(clusterName("a")); return !there })
	if !released(f) || second.MayLeave(clusterName("a")) || second.wrote.Load() != 1 {
		t.Errorf("want it released, and offboarded once, got %d", second.wrote.Load())
	}
}

// TestOnlyTheSameClusterIsOffboardedAfterARestart has pins of clusters that cannot be offboarded.
func TestOnlyTheSameClusterIsOffboardedAfterARestart(t *testing.T) {
	f, src := markedServer(t), newFakeSource()
	for name, kubeconfig := range map[string][]byte{"other": f.kubeconfig(t, "token"), "nosecret": nil, "enrolled": f.kubeconfig(t, "token")} {
		src.set(name, kubeconfig)
		src.with(name, func(e *entry) { e.unenrolled = name != "enrolled" })
	}
	pinned := pins{
		clusterName("other"):    {UID: "0b7e9a4c-9d1f-4e0a-8a53-2f6c1d7e8b90", ObjectUID: "object-other"},
		clusterName("nosecret"): {UID: "1b7e9a4c-9d1f-4e0a-8a53-2f6c1d7e8b90", ObjectUID: "object-nosecret"},
		clusterName("enrolled"): {UID: fakeUID, ObjectUID: "object-enrolled"},
	}
	l := newLeaver(t, src, func(o *Options) { o.Pins = pinned })
	l.waitFor(t, "enrolled", StateConnected, "")
	for _, name := range []string{"other", "nosecret"} {
		connectiontest.Eventually(t, name+" is given up", func() bool {
			_, there := l.Lookup(clusterName(name))
			return !there && !l.MayLeave(clusterName(name))
		})
	}
	if l.wrote.Load() != 0 {
		t.Error("want nothing offboarded")
	}
}
