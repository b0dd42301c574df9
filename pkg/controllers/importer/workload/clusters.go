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
	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// Clusters caches the answers of imported clusters, by import.
type Clusters struct {
	Clock  clock.Clock
	memory *accounts

	mu    sync.Mutex
	known map[types.NamespacedName]Answer
}

// Answer is a cluster's answer.
type Answer struct {
	UID types.UID
	At  time.Time
	// Who identifies the credentials of the query.
	Who        [sha256.Size]byte
	Nodes      []reflection.Node
	NodesKnown bool
	Access     metav1.Condition
	// Created is when the cluster was created; zero if it does not say so.
	Created time.Time
	// Unauthenticated means that the cluster does not accept the credentials.
	Unauthenticated bool
	// Failures is how often in a row querying the cluster failed.
	Failures int
	// tooMuch means that there is no memory for the Nodes.
	tooMuch bool
	// memory is the memory held for the Nodes.
	memory *holding
}

// NewClusters returns an empty cache. Its content is charged to a budget; nil for none.
func NewClusters(c clock.Clock, b *limits.Budget) *Clusters {
	return &Clusters{Clock: c, memory: newAccounts(b), known: map[types.NamespacedName]Answer{}}
}

// Last is the cluster's last answer for the same import.
func (c *Clusters) Last(key types.NamespacedName, uid types.UID) Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.known[key]; a.UID == uid {
		return a
	}
	return Answer{UID: uid}
}

// Remember caches an answer, and returns what it keeps: without the Nodes, if there is no memory for them.
func (c *Clusters) Remember(key types.NamespacedName, a Answer) Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.memory = c.known[key].memory; a.memory == nil {
		a.memory = c.memory.reserve(key.Namespace, func(error) { c.dropNodes(key) })
	}
	if err := a.memory.Hold(nodesSize(a.Nodes)); err != nil {
		a = a.withoutNodes()
	}
	c.known[key] = a
	return a
}

// dropNodes releases the memory of an import's Nodes for others.
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

// Nodes are the cluster's Nodes, if they were read.
func (c *Clusters) Nodes(key types.NamespacedName, uid types.UID) ([]reflection.Node, bool) {
	a := c.Last(key, uid)
	return a.Nodes, a.NodesKnown
}

// Forget drops the answer for an import that is gone.
func (c *Clusters) Forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known[key].memory.Close()
	delete(c.known, key)
}

// GoodFor is how long an answer is valid: one with the Nodes until the next resync, one without them until the next
// retry.
func (a Answer) GoodFor() time.Duration {
	switch {
	case a.Failures > 0:
		return LeftAloneFor(a.Failures)
	case a.NodesKnown || a.tooMuch:
		return Resync
	default:
		return Retry
	}
}

// Condition is the condition that reports an answer to users.
func (a Answer) Condition() metav1.Condition {
	c := a.Access
	if a.tooMuch {
		c.Message += "; its Nodes are not kept, because the imports of this namespace need more than their share of the manager's memory"
	}
	return c
}

// Client returns a client for the cluster of an import. The import's namespace is charged for the memory of answers.
func (c *Clusters) Client(namespace string, kubeconfig []byte, o credentials.Options) (*Client, error) {
	w, err := NewClient(kubeconfig, o)
	if err != nil {
		return nil, err
	}
	w.open = func(abort func(error)) limits.Charge { return c.memory.reserve(namespace, abort) }
	return w, nil
}

// Ask reviews the credentials' rights in a cluster, and lists its Nodes.
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
		answer.Created = w.created(ctx)
	}
	return answer, nil
}
