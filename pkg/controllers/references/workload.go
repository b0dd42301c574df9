// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/references"
)

// Owners in the watchers of a workload cluster. Each source has one of its own.
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

	// definitions watches definitions, of which little is kept, and watcher objects and what they depend on.
	definitions *kindwatch.Watcher
	watcher     *kindwatch.Watcher

	// watching is held while it is changed which sources are watched. It is taken before mu.
	watching sync.Mutex

	mu sync.Mutex

	// class is that of the cluster, as it was known last. Most of what is told about a cluster is about its connection.
	class        string
	tenancy      references.Tenancy
	declared     map[kindwatch.Kind]*declared
	dependencies *dependencies

	// told is the reason that an object was told last.
	told map[objectKey]string
}

// workloads are the engaged workload clusters.
type workloads = multicluster.Instances[Request, *workload]

func newWorkloads(r *reconciler) *workloads {
	return multicluster.NewInstances(multicluster.InstancesOptions[Request, *workload]{
		What:    "references",
		New:     r.newWorkload,
		Added:   func(_ mcr.ClusterName, _, _ *workload, _ bool) {},
		Removed: r.metrics.forgetCluster,
		Queued:  (*workload).enqueue,
	})
}

func (r *reconciler) newWorkload(
	name mcr.ClusterName, cl cluster.Cluster, queue workqueue.TypedRateLimitingInterface[Request],
) (*workload, error) {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(cl.GetConfig(), cl.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for cluster %q: %w", name, err)
	}
	w := &workload{
		name: name, inHub: name == hubName, client: cl.GetClient(), reader: cl.GetAPIReader(), recorder: cl.GetEventRecorder(controllerName),
		mapper: newServed(client, r.clock), queue: queue,
		declared: map[kindwatch.Kind]*declared{}, dependencies: newDependencies(), told: map[objectKey]string{},
	}
	watched, err := multicluster.WatchOptions(cl)
	if err != nil {
		return nil, fmt.Errorf("cannot make clients for cluster %q: %w", name, err)
	}
	watched.Clock, watched.Lists = r.clock, r.lists
	definitions, objects := watched, watched
	definitions.Reduce, definitions.Handler = reduce, w.definitionChanged
	objects.KeepManager, objects.Handler = references.FieldManager, w.changed
	if w.definitions, err = kindwatch.New(definitions); err != nil {
		return nil, fmt.Errorf("cannot watch the definitions of cluster %q: %w", name, err)
	}
	if w.watcher, err = kindwatch.New(objects); err != nil {
		return nil, fmt.Errorf("cannot watch cluster %q: %w", name, err)
	}
	return w, nil
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

// enqueue has the cluster itself looked at. It does not block.
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
	if e.Kind.FieldSelector != "" {
		if isDefinition(e.Kind) && e.Object != nil && !e.Initial {
			_, group, _ := strings.Cut(e.Object.GetName(), ".")
			w.mapper.changed(group)
		}
		w.mu.Lock()
		users := w.dependencies.usersOf(e.Kind)
		w.mu.Unlock()
		for _, req := range users {
			w.queue.Add(req)
		}
		return
	}
	if e.Object != nil {
		w.queue.Add(w.request(e.Kind, e.Object))
	}
}

func (w *workload) request(kind kindwatch.Kind, obj client.Object) Request {
	return Request{ClusterName: w.name, Kind: kind, NamespacedName: client.ObjectKeyFromObject(obj)}
}

// lookAfter makes kinds all that are looked after, by rules.
func (w *workload) lookAfter(kinds []*declared, tenancy references.Tenancy) {
	byKind := make(map[kindwatch.Kind]*declared, len(kinds))
	watched := make([]kindwatch.Kind, 0, len(kinds))
	for _, d := range kinds {
		byKind[d.kind] = d
		watched = append(watched, d.kind)
	}
	w.mu.Lock()
	before := w.declared
	w.declared, w.tenancy = byKind, tenancy
	var orphaned []Request
	for key := range w.told {
		for kind := range before {
			if byKind[kind] == nil && kind.GroupKind() == key.GroupKind {
				orphaned = append(orphaned, Request{ClusterName: w.name, Kind: kind, NamespacedName: key.NamespacedName})
			}
		}
	}
	w.mu.Unlock()
	for _, req := range orphaned {
		// It is forgotten: of a kind that is not watched any more, nothing is reported.
		w.queue.Add(req)
	}
	w.watcher.Set(ownerObjects, watched...)
	for kind := range byKind {
		if before[kind] == nil {
			continue
		}
		// Its schema, or what is permitted, may have changed.
		objects, err := w.watcher.List(kind)
		if err != nil {
			continue
		}
		for _, obj := range objects {
			w.queue.Add(w.request(kind, obj))
		}
	}
}

// ignore looks after nothing any more.
func (w *workload) ignore() {
	w.lookAfter(nil, references.Tenancy{})
	w.watching.Lock()
	defer w.watching.Unlock()
	w.mu.Lock()
	users := w.dependencies.users
	w.dependencies, w.told = newDependencies(), map[objectKey]string{}
	w.mu.Unlock()
	for kind := range users {
		w.watcher.Release(ownerOf(kind))
	}
}

// kinds are those whose definitions declare references, the first of them by name if there are too many.
func (w *workload) kinds() ([]*declared, error) {
	entries, err := w.definitions.Entries(definitionKind)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b kindwatch.Entry) int { return strings.Compare(a.Key.Name, b.Key.Name) })
	var out []*declared
	for i := range entries {
		if d, ok := entries[i].Record.(*declared); ok && len(out) < maxKinds {
			out = append(out, d)
		}
	}
	return out, nil
}

// rules are how an object of a kind is to be looked after; nil if it is not.
func (w *workload) rules(kind kindwatch.Kind) (*declared, references.Tenancy) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.declared[kind], w.tenancy
}

// depend makes sources, and what else is watched for it, all that an object depends on. It returns whether all of it is
// watched, and why the object must not be filled in: it depends on itself, or on so many that it is not known. Of a
// kind that is not looked after any more nothing is noted.
func (w *workload) depend(
	key objectKey, req Request, sources []references.Source, others ...kindwatch.Kind,
) (all bool, failed *references.Error) {
	w.watching.Lock()
	defer w.watching.Unlock()
	w.mu.Lock()
	if w.declared[req.Kind] == nil {
		sources, others = nil, nil
	}
	change := w.dependencies.set(key, req, sources, others...)
	cycle, known := w.dependencies.cycle(key)
	var wake []Request
	for _, member := range cycle {
		if member != key && w.told[member] != references.ReasonCycle {
			wake = append(wake, w.dependencies.requests[member])
		}
	}
	if change.lost {
		wake = append(wake, w.cyclicDependents(key)...)
	}
	w.mu.Unlock()
	for _, kind := range change.start {
		w.watcher.Set(ownerOf(kind), kind)
	}
	for _, kind := range change.stop {
		w.watcher.Release(ownerOf(kind))
	}
	for _, r := range wake {
		w.queue.Add(r)
	}
	switch {
	case !known:
		failed = &references.Error{
			Reason: references.ReasonCycle, Cause: fmt.Errorf("the object depends on others by more than %d references", maxSteps),
		}
	case len(cycle) > 0:
		failed = cyclic(cycle)
	}
	return change.all, failed
}

// cyclicDependents are the requests of the objects that depend on another one and were told of a cycle, which may have
// ended there. The caller holds mu.
func (w *workload) cyclicDependents(key objectKey) []Request {
	return w.dependencies.dependentsOf(key, func(k objectKey) bool { return w.told[k] == references.ReasonCycle })
}

func ownerOf(kind kindwatch.Kind) string { return "source/" + kind.String() + "/" + kind.FieldSelector }

// tell notes the reason that an object is told, and returns the one before; empty if there was none. Of a kind that is
// not looked after any more nothing is noted.
func (w *workload) tell(req Request, reason string) (before string) {
	key := req.key()
	w.mu.Lock()
	defer w.mu.Unlock()
	before = w.told[key]
	if w.declared[req.Kind] == nil {
		return before
	}
	w.told[key] = reason
	if before == references.ReasonCycle && reason != before {
		for _, r := range w.cyclicDependents(key) {
			w.queue.Add(r)
		}
	}
	return before
}

// forget forgets an object.
func (w *workload) forget(req Request) {
	_, _ = w.depend(req.key(), req, nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.told, req.key())
}

// ifLookedAfter calls fn if a kind is looked after, and keeps it so meanwhile.
func (w *workload) ifLookedAfter(kind kindwatch.Kind, fn func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.declared[kind] != nil {
		fn()
	}
}

// isOfAnother notes the class of the cluster, and returns whether that is news.
func (w *workload) isOfAnother(class string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	news := w.class != class
	w.class = class
	return news
}
