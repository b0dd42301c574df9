// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/bounded"
	"github.com/masthead-dev/masthead/pkg/budget"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/scope"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// Clusters is what imported clusters said of themselves, by import.
type Clusters struct {
	Clock  clock.Clock
	memory *accounts

	mu    sync.Mutex
	known map[types.NamespacedName]Answer
}

// Answer is what a cluster said.
type Answer struct {
	UID types.UID
	At  time.Time
	// Who identifies the credentials with which it was asked.
	Who        [sha256.Size]byte
	Nodes      []reflection.Node
	NodesKnown bool
	Access     metav1.Condition
	// Unauthenticated means that the cluster does not know the credentials.
	Unauthenticated bool
	// Failures is how often in a row the cluster could not be asked.
	Failures int
	// tooMuch means that there is no memory for the Nodes.
	tooMuch bool
	// memory is what is held for the Nodes.
	memory *holding
}

// NewClusters returns one that knows no answers. What it keeps is charged to a budget; nil for none.
func NewClusters(c clock.Clock, b *budget.Budget) *Clusters {
	return &Clusters{Clock: c, memory: newAccounts(b), known: map[types.NamespacedName]Answer{}}
}

// Last is the last answer of a cluster to the same import.
func (c *Clusters) Last(key types.NamespacedName, uid types.UID) Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.known[key]; a.UID == uid {
		return a
	}
	return Answer{UID: uid}
}

// Remember keeps an answer, and returns what is kept of it: without the Nodes, where there is no memory for them.
func (c *Clusters) Remember(key types.NamespacedName, a Answer) Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.memory = c.known[key].memory; a.memory == nil {
		a.memory = c.memory.hold(key.Namespace, func(error) { c.dropNodes(key) })
	}
	if err := a.memory.Hold(sizeOf(a.Nodes)); err != nil {
		a = a.withoutNodes()
	}
	c.known[key] = a
	return a
}

// dropNodes gives back the memory of the Nodes of an import: others need it.
func (c *Clusters) dropNodes(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a, ok := c.known[key]; ok {
		c.known[key] = a.withoutNodes()
	}
}

func (a Answer) withoutNodes() Answer {
	_ = a.memory.Hold(0) // Less is always granted.
	a.Nodes, a.NodesKnown, a.tooMuch = nil, false, true
	return a
}

// Nodes are those of the cluster, if they were read.
func (c *Clusters) Nodes(key types.NamespacedName, uid types.UID) ([]reflection.Node, bool) {
	a := c.Last(key, uid)
	return a.Nodes, a.NodesKnown
}

// Forget drops what a cluster said of itself, for an import that is gone.
func (c *Clusters) Forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known[key].memory.Close()
	delete(c.known, key)
}

// GoodFor is how long an answer counts: one with the Nodes until the next resync, one without them until the next
// retry.
func (a Answer) GoodFor() time.Duration {
	switch {
	case a.Failures > 0:
		return scope.LeftAloneFor(a.Failures)
	case a.NodesKnown || a.tooMuch:
		return scope.Resync
	default:
		return scope.Retry
	}
}

// Condition is what users are told of an answer.
func (a Answer) Condition() metav1.Condition {
	c := a.Access
	if a.tooMuch {
		c.Message += "; its Nodes are not kept, because the imports of this namespace need more than their share of the manager's memory"
	}
	return c
}

// Client is one for a cluster of an import in a namespace, to which the memory is charged that answers take.
func (c *Clusters) Client(namespace string, kubeconfig []byte, o credentials.Options) (*Client, error) {
	w, err := NewClient(kubeconfig, o)
	if err != nil {
		return nil, err
	}
	w.open = func(abort func(error)) bounded.Account { return c.memory.hold(namespace, abort) }
	return w, nil
}

// Ask asks a cluster for the rights of the credentials and for its Nodes.
func (c *Clusters) Ask(ctx context.Context, namespace string, kubeconfig []byte, o credentials.Options) (Answer, error) {
	w, err := c.Client(namespace, kubeconfig, o)
	if err != nil {
		return Answer{}, err
	}
	defer w.Close()
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	answer := Answer{Access: w.access(ctx)}
	answer.Unauthenticated = w.unauthenticated
	if answer.Access.Reason != fleetv1alpha1.ReasonAccessNone && answer.Access.Reason != fleetv1alpha1.ReasonAccessUnknown {
		answer.Nodes, err = w.nodes(ctx)
		answer.NodesKnown = err == nil
	}
	return answer, nil
}
