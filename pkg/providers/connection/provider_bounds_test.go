// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cluster"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/providers/connection/connectiontest"
)

// fleet is many clusters at one address, each with a path of its own.
type fleet struct {
	*frontend
	names []string
}

func newFleet(t *testing.T, n int) *fleet {
	t.Helper()
	f := &fleet{frontend: newFrontend(t, nil)}
	f.setAnswer(func(w http.ResponseWriter, r *http.Request) bool {
		parts := strings.SplitN(r.URL.Path, "/", 3)
		fakeAPI(w, r, "/"+parts[1], fmt.Sprintf("0f0f0f0f-b8de-4056-8188-0000000000%s", parts[1]))
		return true
	})
	for i := range n {
		f.names = append(f.names, fmt.Sprintf("team-%d/w%d", i%2, i))
	}
	return f
}

// newKubeconfig returns the kubeconfig of a cluster, with a name of the server or without.
func (f *fleet) newKubeconfig(t *testing.T, i int, serverName string) []byte {
	t.Helper()
	kubeconfig := connectiontest.Kubeconfig(t, fmt.Sprintf("%s/%02d", f.URL, i), connectiontest.Authority(f.Server), "token")
	return bytes.Replace(kubeconfig, []byte(`"server"`), []byte(`"tls-server-name":"`+serverName+`","server"`), 1)
}

// crowd counts who is inside, and keeps everybody there until it is opened.
type crowd struct {
	open chan struct{}

	mu           sync.Mutex
	inside, most int
	visits       map[mcr.ClusterName]int
}

func newCrowd() *crowd { return &crowd{open: make(chan struct{}), visits: map[mcr.ClusterName]int{}} }

func (c *crowd) enter(ctx context.Context, name mcr.ClusterName) {
	c.mu.Lock()
	c.inside++
	c.most = max(c.most, c.inside)
	c.visits[name]++
	c.mu.Unlock()
	select {
	case <-c.open:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inside--
}

func (c *crowd) numbers() (inside, most, visitors int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inside, c.most, len(c.visits)
}

// check waits until all places are taken, lets everybody through, and waits until each cluster was inside.
func (c *crowd) check(t *testing.T, l lane, clusters int) {
	t.Helper()
	places := lanePlaces(minConcurrentReconciles)[l]
	connectiontest.Eventually(t, "all places are taken", func() bool { n, _, _ := c.numbers(); return n >= places })
	close(c.open)
	connectiontest.Eventually(t, "every cluster had its turn", func() bool { _, _, n := c.numbers(); return n == clusters })
	if _, most, _ := c.numbers(); most != places {
		t.Errorf("want %d clusters at once, got %d", places, most)
	}
}

// TestOffboardingIsBounded un-enrols a fleet at once.
func TestOffboardingIsBounded(t *testing.T) {
	f, src, inside := newFleet(t, 60), newFakeSource(), newCrowd()
	h := newHarnessWith(t, src, func(p *Provider) {
		p.OnOffboard(func(ctx context.Context, name mcr.ClusterName) error { inside.enter(ctx, name); return nil })
	}, func(o *Options) { o.MaxPerNamespace, o.OffboardTimeout = minConcurrentReconciles, time.Hour })
	for i, name := range f.names {
		src.set(name, f.newKubeconfig(t, i, ""))
	}
	for _, name := range f.names {
		h.waitFor(t, name, StateConnected, "")
	}
	for _, name := range f.names {
		src.remove(name)
	}
	inside.check(t, laneOffboard, len(f.names))
}

// crowdedGate counts the hand-overs.
type crowdedGate struct {
	Gate
	inside *crowd
}

func (g crowdedGate) WaitForSync(ctx context.Context, name mcr.ClusterName, _ cluster.Cluster) error {
	g.inside.enter(ctx, name)
	return nil
}

// TestReplacingConnectionsIsBounded changes how the whole fleet is reached.
func TestReplacingConnectionsIsBounded(t *testing.T) {
	f, src, inside := newFleet(t, 60), newFakeSource(), newCrowd()
	h := newHarness(t, src, func(o *Options) {
		o.Gate = crowdedGate{o.Gate, inside}
		o.MaxPerNamespace, o.HandoverTimeout = minConcurrentReconciles, time.Hour
	})
	for i, name := range f.names {
		src.set(name, f.newKubeconfig(t, i, ""))
	}
	for _, name := range f.names {
		h.waitFor(t, name, StateConnected, "")
	}
	for i, name := range f.names {
		src.set(name, f.newKubeconfig(t, i, "example.com"))
	}
	inside.check(t, laneReplace, len(f.names))
}
