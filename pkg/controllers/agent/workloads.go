// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	crsource "sigs.k8s.io/controller-runtime/pkg/source"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/guard"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// Kinds of a workload cluster that are always watched: what Masthead itself put there, without content.
var (
	ownedCRDKind = multicluster.OwnedDefinitions() //nolint:gochecknoglobals // A constant.

	ownedSecretKind = kindwatch.Kind{ //nolint:gochecknoglobals // A constant.
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
		Resource:         "secrets",
		MetadataOnly:     true,
		LabelSelector:    fleetv1alpha1.ManagedByLabel + "=" + managedByValue,
	}
)

// controllerName is the name of the controller of claims, in metrics, logs and events.
const controllerName = "agent"

// managedByValue is the value of the label masthead.dev/managed-by.
const managedByValue = fleetv1alpha1.FieldManager

// identity is which cluster an instance leads to.
type identity struct {
	// object is the enrolled object of the hub.
	object types.UID

	// cluster is the cluster itself.
	cluster string
}

// same is whether two identities are known to be those of the same cluster.
func (i identity) same(other identity) bool { return i == other && i.cluster != "" }

// workload is one instance of an engaged workload cluster. It lives as long as its connection.
type workload struct {
	workloadConnection

	mu sync.Mutex

	// kinds are the claim kinds that are synchronised, by the name of their CRD: those whose CRD in this cluster is the
	// one that Masthead put there, and those of which claims may be left that need us to go.
	kinds map[string]followed

	// judged are the states of definitions on both sides in which it was decided how they are retained.
	judged map[string]string

	// drained are the CRDs that are not Masthead's, and of which no claim bears our finalizer.
	drained sets.Set[string]

	// unoffered are the definitions that the hub does not offer to the cluster, or not in the version that it has.
	unoffered map[string]struct{}

	// verified are the definitions that were compared with the hub's and found right, in the state that they had then.
	verified map[string]verifiedDefinition

	// secrets are the states in which Masthead left the Secrets that it wrote into the cluster, to notice that somebody else
	// wrote them.
	secrets map[types.NamespacedName]copyState

	// copies are the names of the Secrets with our label, by the UID of their controller.
	copies map[types.UID]sets.Set[string]

	// awaited are Secrets of others that are in the way of claims.
	awaited awaitedSecrets
}

// workloadConnection is how an instance of a cluster is reached.
type workloadConnection struct {
	name     mcr.ClusterName
	identity identity
	client   client.Client
	reader   client.Reader
	recorder events.EventRecorder
	guard    *guard.Guard
	watcher  *kindwatch.Watcher

	// owner is the hub as the owner of what is in the cluster.
	owner func() hubidentity.Owner
}

// newWorkload returns an instance of a cluster of which nothing is known yet.
func newWorkload(c workloadConnection) *workload {
	return &workload{
		workloadConnection: c,
		kinds:              map[string]followed{},
		judged:             map[string]string{},
		drained:            sets.New[string](),
		verified:           map[string]verifiedDefinition{},
		secrets:            map[types.NamespacedName]copyState{},
		copies:             map[types.UID]sets.Set[string]{},
		awaited:            newAwaitedSecrets(),
	}
}

func (w *workload) request(kind kindwatch.Kind, claim *unstructured.Unstructured) Request {
	return Request{
		ClusterName: w.name, Kind: kind,
		NamespacedName: types.NamespacedName{Namespace: claim.GetNamespace(), Name: claim.GetName()},
	}
}

func (w *workload) claimKinds() []kindwatch.Kind {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]kindwatch.Kind, 0, len(w.kinds))
	for _, f := range w.kinds {
		out = append(out, f.kind)
	}
	return out
}

// hubKinds are the claim kinds that have to be followed in the hub because of this cluster.
func (w *workload) hubKinds() []kindwatch.Kind {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []kindwatch.Kind
	for _, f := range w.kinds {
		if f.inHub {
			out = append(out, f.kind)
		}
	}
	return out
}

func (w *workload) retainedKinds() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, f := range w.kinds {
		if f.retained {
			n++
		}
	}
	return n
}

func (w *workload) isDrained(crd string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.drained.Has(crd)
}

func (w *workload) setDrained(crd string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drained.Insert(crd)
}

// setAccepted notes that a definition is Masthead's, so that claims can get our finalizer.
func (w *workload) setAccepted(crd string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drained.Delete(crd)
	delete(w.judged, crd)
}

// definitionNames are the names of the CRDs that Masthead has to do with in this cluster, whether published or not.
func (w *workload) definitionNames() []string {
	names := []string{}
	w.mu.Lock()
	for name := range w.kinds {
		names = append(names, name)
	}
	w.mu.Unlock()
	crds, err := w.watcher.List(ownedCRDKind)
	if err != nil {
		return names
	}
	for _, crd := range crds {
		names = append(names, crd.GetName())
	}
	return names
}

// followed returns how the claims of a CRD are followed.
func (w *workload) followed(crd string) (followed, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, ok := w.kinds[crd]
	return f, ok
}

// kindOf returns the claim kind that is followed for a CRD.
func (w *workload) kindOf(crd string) (kindwatch.Kind, bool) {
	f, ok := w.followed(crd)
	return f.kind, ok
}

// follow follows the claims of a kind from now on, and says whether that is news.
func (w *workload) follow(crd string, f followed) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kinds[crd] == f {
		return false
	}
	w.kinds[crd] = f
	w.watchKinds()
	return true
}

// unfollow leaves the claims of a kind alone from now on, and says whether that is news.
func (w *workload) unfollow(crd string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.kinds[crd]; !ok {
		return false
	}
	delete(w.kinds, crd)
	w.watchKinds()
	return true
}

func (w *workload) watchKinds() {
	kinds := make([]kindwatch.Kind, 0, len(w.kinds))
	for _, f := range w.kinds {
		kinds = append(kinds, f.kind)
	}
	w.watcher.Set(ownerClaims, kinds...)
}

// wrote remembers the state of a Secret that Masthead wrote or found right.
func (w *workload) wrote(key types.NamespacedName, state copyState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.secrets[key] = state
}

func (w *workload) copyState(key types.NamespacedName) copyState {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.secrets[key]
}

func (w *workload) wroteVersion(key types.NamespacedName) string { return w.copyState(key).version }

func (w *workload) forgetSecret(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.secrets, key)
}

// workloads are the engaged workload clusters. It is the source of the requirement controller.
type workloads struct {
	workloadOptions

	mu       sync.Mutex
	byName   map[mcr.ClusterName]*workload
	instance map[cluster.Cluster]*workload
}

// workloadOptions say what the engaged clusters need to know, and whom they tell.
type workloadOptions struct {
	// engaged is told that an instance is the one that counts from now on, and disengaged that a cluster has none any more. Both are
	// called with the lock held: what they note and forget, they do before another instance of the cluster is known.
	engaged    func(*workload)
	disengaged func(mcr.ClusterName)

	// queued has a cluster that was engaged looked at.
	queued func(*workload)

	// identify says which cluster a name leads to now.
	identify func(mcr.ClusterName) identity

	// fleet knows whose the clusters are.
	fleet Fleet

	// handle is called for what happens in a cluster.
	handle func(*workload, kindwatch.Event)
}

// newWorkloads returns the engaged clusters, of which there are none yet.
func newWorkloads(o workloadOptions) *workloads {
	return &workloads{workloadOptions: o, byName: map[mcr.ClusterName]*workload{}, instance: map[cluster.Cluster]*workload{}}
}

// ownerOf returns what says whose is what is in a cluster. A hub can take over from another one while it is connected.
func (s *workloads) ownerOf(name mcr.ClusterName) func() hubidentity.Owner {
	return func() hubidentity.Owner {
		c, _ := s.fleet.Lookup(name)
		return c.Hub
	}
}

// fieldOwner is the field manager with which the cluster is written to.
func (w *workload) fieldOwner() client.FieldOwner {
	return client.FieldOwner(w.owner().FieldManager(fleetv1alpha1.FieldManager))
}

// unprotected returns a claim without our finalizer.
func (w *workload) unprotected(claim *unstructured.Unstructured) *unstructured.Unstructured {
	out := claim.DeepCopy()
	out.SetFinalizers(w.owner().Released(out.GetFinalizers()))
	return out
}

// get returns the instance of a cluster that was engaged last.
func (s *workloads) get(name mcr.ClusterName) (*workload, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.byName[name]
	return w, ok
}

func (s *workloads) all() []*workload {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.byName))
}

// current is whether an instance is the one that counts: a cluster that is being replaced, to make before breaking, has
// two for a while.
func (s *workloads) current(w *workload) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byName[w.name] == w
}

// ifCurrent calls fn if an instance is the one that counts, with the lock held.
func (s *workloads) ifCurrent(w *workload, fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName[w.name] == w {
		fn()
	}
}

// ifGone calls fn if a cluster has no instance, with the lock held, and says whether it did.
func (s *workloads) ifGone(name mcr.ClusterName, fn func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, engaged := s.byName[name]; engaged {
		return false
	}
	fn()
	return true
}

// ForCluster implements mcsource.TypedSource.
func (s *workloads) ForCluster(name mcr.ClusterName, cl cluster.Cluster) (crsource.TypedSource[Request], bool, error) {
	if name == "" {
		return nil, false, nil
	}
	return &workloadSource{workloads: s, name: name, cluster: cl}, true, nil
}

// workloadSource watches the claims of one instance of a cluster.
type workloadSource struct {
	workloads *workloads
	name      mcr.ClusterName
	cluster   cluster.Cluster
}

var _ crsource.TypedSyncingSource[Request] = &workloadSource{}

// String is the source in logs.
func (s *workloadSource) String() string { return "claims" }

// Start implements source.TypedSource. It does not block.
func (s *workloadSource) Start(ctx context.Context, _ workqueue.TypedRateLimitingInterface[Request]) error {
	w := newWorkload(workloadConnection{
		name:     s.name,
		identity: s.workloads.identify(s.name),
		client:   s.cluster.GetClient(),
		reader:   s.cluster.GetAPIReader(),
		recorder: s.cluster.GetEventRecorder(controllerName),
		guard:    multicluster.GuardOf(s.cluster),
		owner:    s.workloads.ownerOf(s.name),
	})
	watched, err := multicluster.WatchOptions(s.cluster)
	if err != nil {
		return fmt.Errorf("cannot make clients for cluster %q: %w", s.name, err)
	}
	watched.Handler, watched.KeepManager = func(e kindwatch.Event) { s.workloads.handle(w, e) }, lateInitManager
	if w.watcher, err = kindwatch.New(watched); err != nil {
		return fmt.Errorf("cannot watch cluster %q: %w", s.name, err)
	}
	w.watcher.Set(ownerFixed, ownedCRDKind, ownedSecretKind, namespaceKind)
	s.workloads.add(s.cluster, w)
	go func() {
		_ = w.guard.Run("following a cluster", func() error { return w.watcher.Start(ctx) })
		_ = w.guard.Do("forgetting a cluster", func() { s.workloads.remove(s.cluster, w) })
	}()
	s.workloads.queued(w)
	return nil
}

// WaitForSync implements source.TypedSyncingSource: whoever replaces an instance of the cluster by this one can wait until
// this one knows what the other knew.
func (s *workloadSource) WaitForSync(ctx context.Context) error {
	s.workloads.mu.Lock()
	w := s.workloads.instance[s.cluster]
	s.workloads.mu.Unlock()
	if w == nil {
		return fmt.Errorf("cannot wait for cluster %q: it is not engaged", s.name)
	}
	return w.watcher.WaitForSync(ctx)
}

// add makes an instance the one that counts. If it leads to the same cluster as its predecessor, in another way, it starts
// with what that one knows. If it does not, or if that is not known, nothing is taken over: the predecessor is treated as gone
// although it may live for a while.
func (s *workloads) add(cl cluster.Cluster, w *workload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch old := s.byName[w.name]; {
	case old == nil:
	case old.identity.same(w.identity):
		w.takeOver(old)
	default:
		s.disengaged(w.name)
	}
	s.byName[w.name] = w
	s.instance[cl] = w
	s.engaged(w)
}

// takeOver begins with what another instance of the same cluster knows.
func (w *workload) takeOver(old *workload) {
	old.mu.Lock()
	defer old.mu.Unlock()
	maps.Copy(w.kinds, old.kinds)
	maps.Copy(w.secrets, old.secrets)
	w.drained = old.drained.Clone()
	w.watchKinds()
}

func (s *workloads) remove(cl cluster.Cluster, w *workload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.instance[cl] == w {
		delete(s.instance, cl)
	}
	if s.byName[w.name] == w {
		delete(s.byName, w.name)
		s.disengaged(w.name)
	}
}
