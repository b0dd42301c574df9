// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"sync"

	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// budgetClass is the budget class of imports: together they have the share of one EnrollmentClass, divided equally
// among namespaces. Using the class that an import names was rejected: whether it allows the namespace is not known
// here, so the writer of a ClusterImport could use up the share of another owner's class. No EnrollmentClass, and no
// namespace, can have this name.
const budgetClass = "ClusterImports"

// accounts are those of the namespaces whose imports use memory.
type accounts struct {
	budget *limits.Budget

	mu   sync.Mutex
	open map[string]*account
}

// account is guarded by the lock of the accounts.
type account struct {
	*limits.Account

	// holdings counts those that are not closed.
	holdings int
}

func newAccounts(b *limits.Budget) *accounts {
	return &accounts{budget: b, open: map[string]*account{}}
}

// reserve returns an empty holding of a namespace's account. See limits.Account.Holder for yield.
func (a *accounts) reserve(namespace string, yield func(error)) *holding {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.open[namespace]
	if of == nil {
		of = &account{Account: a.budget.Account(budgetClass, budgetClass+"/"+namespace, nil)}
		a.open[namespace] = of
	}
	of.holdings++
	return &holding{Holder: of.Holder(yield), end: sync.OnceFunc(func() { a.leave(namespace) })}
}

// leave closes a namespace's account with its last holding.
func (a *accounts) leave(namespace string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.open[namespace]
	if of.holdings--; of.holdings == 0 {
		of.Close()
		delete(a.open, namespace)
	}
}

// holding is a Holder of an account that is closed with its last holding. A nil one holds nothing.
type holding struct {
	*limits.Holder

	end func()
}

// Close releases everything, for good.
func (h *holding) Close() {
	if h == nil {
		return
	}
	h.Holder.Close()
	h.end()
}

// What a Node takes beside its texts, in bytes: the struct, and the smallest map.
const nodeSize = 400

// nodesSize is about how many bytes Nodes take.
func nodesSize(nodes []reflection.Node) int64 {
	size := int64(0)
	for _, n := range nodes {
		size += nodeSize + int64(len(n.KubeletVersion))
		for _, value := range n.Labels {
			size += int64(len(value)) // The keys are constants.
		}
	}
	return size
}
