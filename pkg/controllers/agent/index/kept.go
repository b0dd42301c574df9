// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/metric"
)

// Users who can write to a namespace of the hub, or whose claims lead there, decide how large the hub's objects of
// claim kinds are, and how many there are. So an object is kept whole only if it names an enrolled cluster as its
// source, and if there is room for it; of any other, a few annotations are kept (Reduced). That costs requests, and no
// function: an object of which little is kept is read from the hub when its claim is reconciled. So nothing has to be
// listed again when a cluster is enrolled.
//
// What is kept whole is charged to the namespace of the hub that the object is in and, within it, to the cluster that
// it names. Charging it to that cluster alone would let the owner of any namespace use up the share of a cluster of
// others by naming it; charging it to the namespace alone, one cluster that of others with the same target.

// reducedField of the metadata marks a reduced object. A hub's object that has it is reduced in any case.
const reducedField = "reduced"

// IsReduced reports whether only some metadata of an object is kept.
func IsReduced(obj *unstructured.Unstructured) bool {
	if obj == nil {
		return false
	}
	metadata, _ := obj.Object["metadata"].(map[string]any)
	return metadata[reducedField] != nil
}

// Reduced returns what is kept of an object that is not kept whole.
func Reduced(obj *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{reducedField: true}}}
	out.SetGroupVersionKind(obj.GroupVersionKind())
	out.SetNamespace(obj.GetNamespace())
	out.SetName(obj.GetName())
	out.SetUID(obj.GetUID())
	out.SetResourceVersion(obj.GetResourceVersion())
	out.SetCreationTimestamp(obj.GetCreationTimestamp())
	out.SetDeletionTimestamp(obj.GetDeletionTimestamp())
	out.SetAnnotations(ownership.Annotations(obj))
	return out
}

// payer is who is charged for an object that is kept whole: a namespace of the hub, and the identifier of a cluster.
type payer struct{ namespace, identifier string }

// Kept are the claims in the hub that are kept whole. The class of an account in the budget is the namespace.
type Kept struct {
	hub    *Hub
	budget *limits.Budget

	mu       sync.Mutex
	charged  map[ownership.Place]charge
	accounts map[payer]*account
}

type charge struct {
	*account
	bytes int64
}

// account is what a payer is charged.
type account struct {
	payer
	*limits.Account
	holder *limits.Holder
	bytes  int64
	places sets.Set[ownership.Place]

	// yielding means that its objects are being reduced.
	yielding bool
}

// reserve charges a payer for an object instead of what was charged for it before, and reports whether there is room.
func (c *Kept) reserve(at ownership.Place, by payer, bytes int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.drop(at)
	a := c.accounts[by]
	if a == nil {
		a = &account{payer: by, Account: c.budget.Account(by.namespace, by.identifier, nil), places: sets.New[ownership.Place]()}
		a.holder = a.Holder(func(error) { c.evict(a) })
		c.accounts[by] = a
	}
	room := !a.yielding && a.holder.Hold(a.bytes+bytes) == nil
	if room {
		a.bytes += bytes
		a.places.Insert(at)
		c.charged[at] = charge{account: a, bytes: bytes}
	}
	c.settle(before)
	c.settle(a)
	return room
}

// release ends the charge for an object.
func (c *Kept) release(at ownership.Place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle(c.drop(at))
}

// releaseOthers releases the objects of kinds that are no longer watched, or not in that version.
func (c *Kept) releaseOthers(watched map[schema.GroupResource]kindwatch.Kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at := range c.charged {
		if watched[at.Kind.GroupResource()] != at.Kind {
			c.settle(c.drop(at))
		}
	}
}

// drop removes the charge for an object, and returns the account that had it. The caller holds mu.
func (c *Kept) drop(at ownership.Place) *account {
	was, ok := c.charged[at]
	if !ok {
		return nil
	}
	delete(c.charged, at)
	was.places.Delete(at)
	was.account.bytes -= was.bytes
	return was.account
}

// settle tells the budget what an account holds. One that holds nothing has no share. The caller holds mu.
func (c *Kept) settle(a *account) {
	switch {
	case a == nil:
	case len(a.places) > 0 || a.yielding:
		_ = a.holder.Hold(a.bytes) // Less is always granted.
	case c.accounts[a.payer] == a:
		a.Close()
		delete(c.accounts, a.payer)
	}
}

// evict reduces everything that a payer is charged for. Its objects are kept whole again as they change, if there is
// room.
func (c *Kept) evict(a *account) {
	c.mu.Lock()
	a.yielding = true
	places := a.places.UnsortedList()
	c.mu.Unlock()
	for _, at := range places {
		c.reduce(at)
		c.release(at) // Also one that cannot be read now.
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a.yielding = false
	c.settle(a)
}

// Limit sets the budget for what is kept whole. Without it, there is no limit. Call it before the watcher starts.
func (c *Kept) Limit(b *limits.Budget) { c.budget = b }

// RegisterMemory publishes what is kept whole of the claims in a hub. It panics if that is registered.
func RegisterMemory(reg prometheus.Registerer, h *Hub) {
	metric.RegisterGauges(reg, metric.Definition{
		Name: "masthead_agent_hub_memory_bytes",
		Help: "Estimated memory of the claims in the hub that are kept whole. Its limit is masthead_memory_budget_bytes, once more for " +
			"the hub. Claims beyond the share of their namespace and cluster are read from the hub each time they are reconciled.",
		See: "security.md#what-the-owner-of-one-workload-cluster-gains",
	}, func(emit func(float64, ...string)) {
		used, _ := h.Kept.budget.Used()
		emit(float64(used))
	})
}

// Keep decides what the hub's watcher stores of an object. What is not a claim is the administrator's.
func (c *Kept) Keep(kind kindwatch.Kind, obj *unstructured.Unstructured, size int64) *unstructured.Unstructured {
	if kind.ClusterScoped || kind.MetadataOnly {
		return obj
	}
	at := ownership.Place{Kind: kind, NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	if id := SourceOrZero(obj).Identifier; id != "" && !IsReduced(obj) {
		if _, enrolled := c.hub.Fleet.ByIdentifier(id); enrolled && c.reserve(at, payer{namespace: at.Namespace, identifier: id}, size) {
			return obj
		}
	}
	c.release(at)
	return Reduced(obj)
}

// reduce makes the watcher keep little of an object.
func (c *Kept) reduce(at ownership.Place) {
	if obj, err := c.hub.Watcher.Get(at.Kind, at.NamespacedName); err == nil {
		c.hub.Watcher.KeepAgain(at.Kind, Reduced(obj))
	}
	c.releaseGone(at)
}

// ReduceSource reduces the objects that name a cluster that is not enrolled any more.
func (c *Kept) ReduceSource(identifier string) {
	for _, from := range c.hub.originsIn(identifier) {
		for _, at := range c.hub.Places(from) {
			c.reduce(at)
		}
	}
}

// ReadWhole passes the watcher an object that was read from the hub because it is reduced.
func (c *Kept) ReadWhole(at ownership.Place, live *unstructured.Unstructured) {
	c.hub.Observe(at, live) // If it has changed meanwhile.
	c.hub.Watcher.KeepAgain(at.Kind, live.DeepCopy())
	c.releaseGone(at)
}

// releaseGone releases an object that the watcher does not have, or not whole. An answer of the hub is charged before
// it turns out that the watch has already reported a later state.
func (c *Kept) releaseGone(at ownership.Place) {
	if obj, err := c.hub.Watcher.Metadata(at.Kind, at.NamespacedName); apierrors.IsNotFound(err) || IsReduced(obj) {
		c.release(at)
	}
}
