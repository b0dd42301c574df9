// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/references"
)

// coalesce is how long the change of a source waits for more of them: each costs a read by every object that depends on
// the source, and some sources have a heartbeat.
const coalesce = time.Second

// stateLeftOut is the state of kinds beyond the limit. The other states are those of kindwatch.
const stateLeftOut = "LeftOut"

// Owners in the watchers of a workload cluster. Each source has its own owner.
const (
	ownerDefinitions = "definitions"
	ownerObjects     = "objects"
)

// workload is one instance of an engaged workload cluster. It lives as long as its connection.
type workload struct {
	name     mcr.ClusterName
	inHub    bool
	client   client.Client
	reader   client.Reader
	recorder events.EventRecorder
	mapper   *served
	queue    workqueue.TypedRateLimitingInterface[Request]
	log      logr.Logger

	// definitions watches definitions, and watcher objects and what they depend on. Little of either is cached: see
	// declared, content and version.
	definitions *kindwatch.Watcher
	watcher     *kindwatch.Watcher

	// watching is held while the set of watched sources changes. It is taken before mu.
	watching sync.Mutex

	mu sync.Mutex

	// class is the last known class of the cluster. Most notifications about a cluster concern its connection.
	class        string
	tenancy      references.Tenancy
	marks        marks
	declared     map[kindwatch.Kind]*declared
	dependencies *dependencies

	// leftOut is how many more kinds declare references than are managed.
	leftOut int

	// reported is the last reported reason of each object.
	reported map[objectKey]string
}

// Start implements multicluster.Instance.
func (w *workload) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.definitions.Start(ctx) })
	group.Go(func() error { return w.watcher.Start(ctx) })
	return group.Wait()
}

// WaitForSync implements multicluster.Instance.
func (w *workload) WaitForSync(ctx context.Context) error {
	if err := w.definitions.WaitForSync(ctx); err != nil {
		return err
	}
	return w.watcher.WaitForSync(ctx)
}

// enqueue requeues the cluster itself. It does not block.
func (w *workload) enqueue() { w.queue.Add(Request{ClusterName: w.name}) }

// definitionChanged is the handler of definitions.
func (w *workload) definitionChanged(e kindwatch.Event) {
	if e.Entry != nil {
		if d, ok := e.Entry.Record.(*declared); ok {
			w.mapper.forget(d.kind.Group)
		}
	}
	if !e.Initial {
		w.enqueue()
	}
}

// changed is the handler of objects, and of what they depend on.
func (w *workload) changed(e kindwatch.Event) {
	if isDependency(e.Kind) {
		if isDefinition(e.Kind) && e.Entry != nil && !e.Initial {
			_, group, _ := strings.Cut(e.Entry.Key.Name, ".")
			w.mapper.changed(group)
		}
		w.mu.Lock()
		users := w.dependencies.changed(e.Kind)
		w.mu.Unlock()
		for _, req := range users {
			// Several changes within the delay are one.
			w.queue.AddAfter(req, coalesce)
		}
		return
	}
	if e.Entry != nil {
		w.queue.Add(w.request(e.Kind, e.Entry.Key))
		return
	}
	if e.State != kindwatch.StateSynced {
		// It can only be logged: the affected objects are unknown.
		_, why := w.watcher.State(e.Kind)
		w.log.Info("The references of a kind are not resolved", "kind", e.Kind.String(), "state", e.State, "message", why)
		return
	}
	// Some of what the replaced instance reported may be gone.
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.reported {
		if key.GroupKind == e.Kind.GroupKind() {
			w.queue.Add(w.request(e.Kind, key.NamespacedName))
		}
	}
}

func (w *workload) request(kind kindwatch.Kind, key types.NamespacedName) Request {
	return Request{ClusterName: w.name, Kind: kind, NamespacedName: key}
}

// lookAfter replaces the managed kinds and their rules. Those beyond the limit are left out.
func (w *workload) lookAfter(defined []*declared, tenancy references.Tenancy) {
	kinds, leftOut, marked := chosen(defined)
	byKind := make(map[kindwatch.Kind]*declared, len(kinds))
	watched := make([]kindwatch.Kind, 0, len(kinds))
	for _, d := range kinds {
		byKind[d.kind] = d
		watched = append(watched, d.kind)
	}
	w.mu.Lock()
	before, leftOutBefore := w.declared, w.leftOut
	w.declared, w.marks, w.tenancy, w.leftOut = byKind, marked, tenancy, leftOut
	var orphaned []Request
	for key := range w.reported {
		// No version is managed. The object may have been reported by the instance that this one replaces.
		if kind := (kindwatch.Kind{GroupVersionKind: key.WithVersion("")}); !w.isOfAnotherVersion(kind) {
			orphaned = append(orphaned, w.request(kind, key.NamespacedName))
		}
	}
	w.mu.Unlock()
	for _, req := range orphaned {
		// The object is dropped: a kind that is no longer watched reports nothing.
		w.queue.Add(req)
	}
	if leftOut > 0 && leftOut != leftOutBefore {
		w.log.Info("More kinds declare references than are managed", "lookedAfter", len(kinds), "leftOut", leftOut)
	}
	w.watcher.Set(ownerObjects, watched...)
	for kind := range byKind {
		if before[kind] != nil {
			w.requeueUnsettled(kind) // Its schema, or its permissions, may have changed.
		}
	}
}

// requeueUnsettled queues the objects of a kind that may change without an event of their own.
func (w *workload) requeueUnsettled(kind kindwatch.Kind) {
	objects, err := w.watcher.Entries(kind)
	if err != nil {
		return
	}
	for i := range objects {
		if objects[i].Record != kindwatch.Record(settled) {
			w.queue.Add(w.request(kind, objects[i].Key))
		}
	}
}

// ignore stops managing all kinds.
func (w *workload) ignore() {
	w.lookAfter(nil, references.Tenancy{})
	w.watching.Lock()
	defer w.watching.Unlock()
	w.mu.Lock()
	users, changes := w.dependencies.users, w.dependencies.changes
	w.dependencies, w.reported = newDependencies(), map[objectKey]string{}
	w.dependencies.changes = changes // A reconcile that began before compares with it.
	w.mu.Unlock()
	for kind := range users {
		w.watcher.Release(watchOwner(kind))
	}
}

// defined are the kinds of which anything is kept, by name.
func (w *workload) defined() ([]*declared, error) {
	entries, err := w.definitions.Entries(definitionKind)
	if err != nil {
		return nil, err
	}
	var out []*declared
	for i := range entries {
		if d, ok := entries[i].Record.(*declared); ok {
			out = append(out, d)
		}
	}
	return out, nil
}

// chosen are the kinds that declare references, the first of them if there are too many, how many are left out, and all
// kinds that have marked fields.
func chosen(defined []*declared) (kinds []*declared, leftOut int, marked marks) {
	marked = marks{}
	for _, d := range defined {
		if len(d.marked) > 0 {
			marked[d.kind.GroupKind()] = d
		}
		if d.kind.Version != "" {
			kinds = append(kinds, d)
		}
	}
	leftOut = max(0, len(kinds)-maxKinds)
	return kinds[:len(kinds)-leftOut], leftOut, marked
}

// states counts the kinds that declare references by state.
func (w *workload) states() map[string]int {
	w.mu.Lock()
	kinds, leftOut := slices.Collect(maps.Keys(w.declared)), w.leftOut
	w.mu.Unlock()
	out := map[string]int{}
	for _, kind := range kinds {
		state, _ := w.watcher.State(kind)
		out[string(state)]++
	}
	if leftOut > 0 {
		out[stateLeftOut] = leftOut
	}
	return out
}

// reasons counts the objects with references by the reported reason.
func (w *workload) reasons() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]int{}
	for _, reason := range w.reported {
		out[reason]++
	}
	return out
}

// inherit takes over what the replaced instance reported, until it is known again: otherwise objects would be missing
// from the metrics, and alerts would start over.
func (w *workload) inherit(before *workload) {
	before.mu.Lock()
	reported := maps.Clone(before.reported)
	before.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reported = reported
}

// marks are the kinds with fields that are marked for Secret data. They are replaced, and never changed.
type marks map[schema.GroupKind]*declared

// in returns the marked fields of a kind.
func (m marks) in(gvk schema.GroupVersionKind) *references.MarkedFields {
	if d := m[gvk.GroupKind()]; d != nil {
		return d.markedIn(gvk.Version)
	}
	return nil
}

// rules are the rules for objects of a kind, all of the same moment; nil if it is not managed. They are not
// known before the definitions are, after which objects are queued again.
func (w *workload) rules(kind kindwatch.Kind) (d *declared, tenancy references.Tenancy, marked marks, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.declared[kind], w.tenancy, w.marks, w.declared != nil
}

// changes counts the changes of watched objects.
func (w *workload) changes() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dependencies.changes
}

// coverage says whether the changes of everything on which an object depends are noticed.
type coverage struct {
	all bool

	// why not, for users; empty also while the watches begin.
	why string
}

// coverage returns that of an object from its watches. A watch that ends or begins again requeues the object.
func (w *workload) coverage(c change) coverage {
	out := coverage{all: c.all}
	if !c.all {
		out.why = "more objects are referenced than can be watched"
	}
	for _, kind := range c.watched {
		state, message := w.watcher.State(kind)
		out.all = out.all && state == kindwatch.StateSynced
		switch {
		case out.why != "" || state == kindwatch.StateSynced || state == kindwatch.StateSyncing && message == "":
		case state == kindwatch.StateForbidden:
			out.why = fmt.Sprintf("the manager may not list and watch %s", kind.GroupResource())
		default:
			out.why = fmt.Sprintf("%s cannot be watched (%s)", kind.GroupResource(), state)
		}
	}
	return out
}

// depend replaces what an object depends on by sources, and what else is watched for it. It returns whether all of it
// is watched, and why the object must not be filled in: it depends on itself, or on too many objects to find out. For a
// kind that is no longer managed nothing is recorded.
//
// since is the change count before the sources were read. A source that was so far watched only for others, and has
// changed since, may have been read in its old state: the object is requeued. A new watch begins with a list.
func (w *workload) depend(
	req Request, since uint64, sources []references.Source, others ...kindwatch.Kind,
) (covered coverage, failed *references.Error) {
	key := keyOfRequest(req)
	w.watching.Lock()
	defer w.watching.Unlock()
	w.mu.Lock()
	if w.isOfAnotherVersion(req.Kind) {
		w.mu.Unlock()
		return coverage{all: true}, nil
	}
	if w.declared[req.Kind] == nil {
		sources, others = nil, nil
	}
	change := w.dependencies.set(key, req, sources, others...)
	cycle, known := w.dependencies.cycle(key)
	var wake []Request
	for _, member := range cycle {
		if member != key && w.reported[member] != commonv1alpha1.ReasonCycle {
			wake = append(wake, w.dependencies.requests[member])
		}
	}
	if w.dependencies.changedSince(change.joined, since) {
		wake = append(wake, req)
	}
	if change.lost {
		wake = append(wake, w.cyclicDependents(key)...)
	}
	w.mu.Unlock()
	for _, kind := range change.start {
		w.watcher.Set(watchOwner(kind), kind)
	}
	for _, kind := range change.stop {
		w.watcher.Release(watchOwner(kind))
	}
	for _, r := range wake {
		w.queue.Add(r)
	}
	switch {
	case !known:
		failed = &references.Error{
			Reason: commonv1alpha1.ReasonCycle, Cause: fmt.Errorf("the object depends on others through more than %d references", maxSteps),
		}
	case len(cycle) > 0:
		failed = cyclic(cycle)
	}
	return w.coverage(change), failed
}

// cyclicDependents returns the requests of the objects that depend on another one and have a reported cycle, which may
// have ended there. The caller holds mu.
func (w *workload) cyclicDependents(key objectKey) []Request {
	return w.dependencies.requestsDependingOn(key, func(k objectKey) bool { return w.reported[k] == commonv1alpha1.ReasonCycle })
}

func watchOwner(kind kindwatch.Kind) string {
	return "source/" + kind.String() + "/" + kind.Namespace + "/" + kind.FieldSelector
}

// noteReason records the reported reason of an object, and returns the previous one; empty if there was none. For a
// kind that is no longer managed nothing is recorded.
func (w *workload) noteReason(req Request, reason string) (before string) {
	key := keyOfRequest(req)
	w.mu.Lock()
	defer w.mu.Unlock()
	before = w.reported[key]
	if w.declared[req.Kind] == nil {
		return before
	}
	w.reported[key] = reason
	if before == commonv1alpha1.ReasonCycle && reason != before {
		for _, r := range w.cyclicDependents(key) {
			w.queue.Add(r)
		}
	}
	return before
}

// forget drops an object that is gone, or no longer managed.
func (w *workload) forget(req Request) {
	_, _ = w.depend(req, 0, nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.isOfAnotherVersion(req.Kind) {
		delete(w.reported, keyOfRequest(req))
	}
}

// isOfAnotherVersion reports whether a kind is managed only in another version: late requests with the old one must
// report nothing about its objects. The caller holds mu.
func (w *workload) isOfAnotherVersion(kind kindwatch.Kind) bool {
	if w.declared[kind] != nil {
		return false
	}
	for other := range w.declared {
		if other.GroupKind() == kind.GroupKind() {
			return true
		}
	}
	return false
}

// ifLookedAfter calls fn if a kind is managed, and keeps it so meanwhile.
func (w *workload) ifLookedAfter(kind kindwatch.Kind, fn func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.declared[kind] != nil {
		fn()
	}
}

// isOfAnother records the class of the cluster, and returns whether it changed.
func (w *workload) isOfAnother(class string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	news := w.class != class
	w.class = class
	return news
}
