// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/application/appstatus"
	"github.com/masthead-dev/masthead/pkg/controllers/application/healthcheck"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/guard"
	"github.com/masthead-dev/masthead/pkg/health"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// maxKinds bounds the kinds watched in one cluster. Each takes a stream and a goroutine, and users who can create
// definitions and Applications there decide how many are named.
const maxKinds = 500

// Owners of the kinds that are watched regardless of Applications. Names of Applications contain a slash.
const (
	OwnerFixed   = "fixed"
	OwnerForeign = "foreign-definition"
)

// resolver finds the resource of a kind. kindwatch.Resolver implements it.
type resolver interface {
	Resolve(ctx context.Context, gvk schema.GroupVersionKind) (kindwatch.Kind, error)
	Forget(group string)
	ForgetAll()
}

// Cluster is one instance of an engaged workload cluster. It lives as long as its connection.
type Cluster struct {
	Name  mcr.ClusterName
	Clock clock.Clock

	// Client and Metadata access the API server, Guard recovers panics outside of the watches, and Watcher has the caches
	// of the watches.
	Client   dynamic.Interface
	Metadata metadata.Interface
	Guard    *guard.Guard
	Watcher  *kindwatch.Watcher

	// Wanted are the marks that Applications look for, Texts the texts shared by many records.
	Wanted *record.WantedMarks
	Texts  record.Texts

	// HealthChecks creates the Pods of health checks, and Announcements writes the Events about changes of health.
	HealthChecks  *healthcheck.Checks
	Announcements *appstatus.Announcements

	resolver       resolver
	queue          workqueue.TypedRateLimitingInterface[mcreconcile.Request]
	requestTimeout time.Duration

	// watching is held while an Application's kinds in the watcher change, so that none are added for a deleted
	// Application. It is taken before mu.
	watching sync.Mutex

	mu sync.Mutex

	// applications are the cluster's Applications, with their state between two reconciles.
	applications map[record.ApplicationKey]*Tracked

	// byUID finds the Application of an owner reference.
	byUID map[types.UID]record.ApplicationKey

	// dependents are the Applications that depend on one, whether or not that exists.
	dependents map[record.ApplicationKey]sets.Set[record.ApplicationKey]

	// users are the Applications that use a kind. It has every watched kind of components and health checks.
	users map[kindwatch.Kind]sets.Set[record.ApplicationKey]

	// unansweredUntil is until when a group and version that the API server did not answer for is not requested.
	unansweredUntil map[schema.GroupVersion]time.Time

	// refusals are the writes of owner references that the cluster refused.
	refusals map[ObjectKey]Refusal

	// mode is how the cluster's Applications are handled, and policy what is allowed. Each change of them makes another
	// policy generation.
	mode             Mode
	policy           record.Policy
	policyGeneration uint64

	// Reported are Applications that the previous instance reported to the hub, until it is known which still exist.
	Reported map[record.ApplicationKey]types.UID
}

// Tracked is the state kept for an Application between two reconciles.
type Tracked struct {
	UID types.UID

	// dependencies are those in the spec.
	dependencies []string

	// Kinds are those watched because of it, and groups the API groups that it names.
	Kinds  KindSet
	groups []string

	// started is when its last reconcile began.
	started time.Time

	// settlingSince is since when its status has been waiting for a pending observation; zero if it does not wait.
	settlingSince time.Time

	// Patched are the objects whose owner references were written, with the version before: until the watch shows another
	// version, it is behind the write. Only the reconcile uses it. It is nil when empty, which is the usual case, to save
	// a map for each Application.
	Patched map[types.UID]string
}

// Wrote records an attempt to write the owner references of an object at a version.
func (t *Tracked) Wrote(uid types.UID, version string) {
	if t.Patched == nil {
		t.Patched = map[types.UID]string{}
	}
	t.Patched[uid] = version
}

// ObjectKey names an object in a cluster.
type ObjectKey struct {
	Kind kindwatch.Kind
	types.NamespacedName
}

// Begin records the start of a reconcile of an Application, and returns its state; nil if the cluster has no such
// Application.
func (w *Cluster) Begin(key record.ApplicationKey) *Tracked {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.applications[key]
	if t != nil {
		t.started = w.Clock.Now()
	}
	return t
}

// Application returns an Application from the watch; nil if there is none.
func (w *Cluster) Application(key record.ApplicationKey) *appsv1alpha1.Application {
	entry, err := w.Watcher.Entry(record.ApplicationKind, key)
	if err != nil {
		return nil
	}
	return record.ApplicationIn(&entry)
}

// Track records a new or changed Application. The state of a previous one of the same name is forgotten.
func (w *Cluster) Track(key record.ApplicationKey, app *appsv1alpha1.Application) {
	if uid, known := w.applicationUID(key); known && uid != app.UID {
		w.Untrack(key)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.applications[key]
	if t == nil {
		t = &Tracked{UID: app.UID}
		w.applications[key] = t
		w.byUID[app.UID] = key
	}
	w.setDependencies(key, t, app.Spec.Dependencies)
}

// applicationUID is the UID of the Application tracked under a key.
func (w *Cluster) applicationUID(key record.ApplicationKey) (uid types.UID, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.applications[key]; t != nil {
		return t.UID, true
	}
	return "", false
}

// setDependencies records the dependencies of an Application. The caller holds mu.
func (w *Cluster) setDependencies(key record.ApplicationKey, t *Tracked, dependencies []string) {
	for _, name := range t.dependencies {
		on := record.ApplicationKey{Namespace: key.Namespace, Name: name}
		w.dependents[on].Delete(key)
		if len(w.dependents[on]) == 0 {
			delete(w.dependents, on)
		}
	}
	t.dependencies = dependencies
	for _, name := range dependencies {
		on := record.ApplicationKey{Namespace: key.Namespace, Name: name}
		if w.dependents[on] == nil {
			w.dependents[on] = sets.New[record.ApplicationKey]()
		}
		w.dependents[on].Insert(key)
	}
}

// Untrack forgets a deleted Application.
func (w *Cluster) Untrack(key record.ApplicationKey) {
	w.watching.Lock()
	defer w.watching.Unlock()
	w.mu.Lock()
	if t := w.applications[key]; t != nil {
		w.setDependencies(key, t, nil)
		w.setKinds(key, t, nil)
		delete(w.byUID, t.UID)
		delete(w.applications, key)
		w.HealthChecks.Forget(t.UID)
	}
	w.mu.Unlock()
	w.Wanted.Want(key, nil)
	w.Watcher.Release(key.String())
}

// Watch replaces the kinds watched because of an Application. Kinds beyond the cluster's limit are not watched, and are
// returned.
func (w *Cluster) Watch(key record.ApplicationKey, t *Tracked, kinds sets.Set[kindwatch.Kind], groups sets.Set[string]) (refused sets.Set[kindwatch.Kind]) {
	w.watching.Lock()
	defer w.watching.Unlock()
	w.mu.Lock()
	if w.applications[key] != t {
		w.mu.Unlock()
		return nil
	}
	refused = sets.New[kindwatch.Kind]()
	news := 0
	for kind := range kinds {
		if w.users[kind] != nil {
			continue
		}
		if len(w.users)+news >= maxKinds {
			refused.Insert(kind)
			continue
		}
		news++
	}
	granted := kinds.Difference(refused)
	changed := !t.Kinds.Set().Equal(granted) || (len(t.groups) == 0) != (len(groups) == 0)
	t.groups = slices.Clip(sets.List(groups))
	if changed {
		w.setKinds(key, t, granted)
	}
	w.mu.Unlock()
	if changed {
		watched := slices.Collect(maps.Keys(granted))
		if len(groups) > 0 {
			// These report that a kind is added or removed.
			watched = append(watched, record.DefinitionKind, record.APIServiceKind)
		}
		w.Watcher.Set(key.String(), watched...)
	}
	return refused
}

// setKinds records which kinds an Application uses. The caller holds mu.
func (w *Cluster) setKinds(key record.ApplicationKey, t *Tracked, kinds sets.Set[kindwatch.Kind]) {
	for kind := range t.Kinds.Set().Difference(kinds) {
		w.users[kind].Delete(key)
		if len(w.users[kind]) == 0 {
			delete(w.users, kind)
		}
	}
	for kind := range kinds {
		if w.users[kind] == nil {
			w.users[kind] = sets.New[record.ApplicationKey]()
		}
		w.users[kind].Insert(key)
	}
	t.Kinds = newKindSet(kinds)
}

// Users are the Applications that use a kind.
func (w *Cluster) Users(kind kindwatch.Kind) []record.ApplicationKey {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.users[kind]))
}

// usersOfGroup are the Applications that name an API group, and its watched kinds.
func (w *Cluster) usersOfGroup(group string) (keys []record.ApplicationKey, kinds []kindwatch.Kind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, t := range w.applications {
		if slices.Contains(t.groups, group) {
			keys = append(keys, key)
		}
	}
	for kind := range w.users {
		if kind.Group == group {
			kinds = append(kinds, kind)
		}
	}
	return keys, kinds
}

// Dependents are the Applications that depend on one.
func (w *Cluster) Dependents(key record.ApplicationKey) []record.ApplicationKey {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.dependents[key]))
}

// Keys are the Applications that the cluster has.
func (w *Cluster) Keys() []record.ApplicationKey {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.applications))
}

// Has reports whether an Application is to be reported to the hub.
func (w *Cluster) Has(key record.ApplicationKey, uid types.UID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.applications[key]
	return t != nil && t.UID == uid && w.mode == ModeEnabled
}

// KindsSelected are the watched kinds, in any form, whose objects may be selected. A selector's version is ignored: it
// is rare, and an extra reconcile is harmless.
func (w *Cluster) KindsSelected(selectors []health.Selector) []kindwatch.Kind {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []kindwatch.Kind
	for kind := range w.users {
		if SelectedBy(selectors, kind.GroupKind()) {
			out = append(out, kind)
		}
	}
	return out
}

// SelectedBy reports whether a selector matches objects of a kind.
func SelectedBy(selectors []health.Selector, gk schema.GroupKind) bool {
	return slices.ContainsFunc(selectors, func(s health.Selector) bool { return s.Selects(gk) })
}

// TakeReported returns, once, what the previous instance reported to the hub.
func (w *Cluster) TakeReported() map[record.ApplicationKey]types.UID {
	w.mu.Lock()
	defer w.mu.Unlock()
	reported := w.Reported
	w.Reported = nil
	return reported
}

// UIDs are the UIDs of the Applications by key.
func (w *Cluster) UIDs() map[record.ApplicationKey]types.UID {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make(map[record.ApplicationKey]types.UID, len(w.applications))
	for key, t := range w.applications {
		out[key] = t.UID
	}
	return out
}

// Start implements multicluster.Instance.
func (w *Cluster) Start(ctx context.Context) error { return w.Watcher.Start(ctx) }

// WaitForSync implements multicluster.Instance.
func (w *Cluster) WaitForSync(ctx context.Context) error { return w.Watcher.WaitForSync(ctx) }
