// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/setmap"
)

// A Secret that is not Masthead's can be in the way of a connection Secret. Masthead does not watch the Secrets of a workload
// cluster, only those that it wrote. While a claim is refused because of another one, that one is watched by its namespace and
// name, so that the claim goes on as soon as it is deleted.
//
// What is watched of it is its existence: metadata without labels, and of annotations none but our own.

// maxAwaitedSecrets is how many Secrets of one cluster are watched by their names. Each watch is a request to the cluster's API
// server and about 40 KiB. What is not watched is looked at again by slowRetry.
const maxAwaitedSecrets = 16

// ownerAwaited asks the watcher of a workload cluster for the Secrets that are in the way.
const ownerAwaited = "awaited-secrets"

// awaitedSecretKind watches one Secret.
func awaitedSecretKind(key types.NamespacedName) kindwatch.Kind {
	return kindwatch.Kind{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
		Resource:         "secrets",
		MetadataOnly:     true,
		OnlyAnnotations:  HubSecretVersionAnnotation,
		FieldSelector:    fields.Set{"metadata.namespace": key.Namespace, "metadata.name": key.Name}.String(),
	}
}

// awaitedSecrets are the Secrets of a workload cluster that are in the way of claims. The mutex of the workload guards it.
type awaitedSecrets struct {
	// requests are the claims that wait for a Secret to go, and keys is the inverse.
	requests setmap.Map[types.NamespacedName, Request]
	keys     setmap.Map[Request, types.NamespacedName]

	// watched are those of them that are watched.
	watched map[kindwatch.Kind]types.NamespacedName
}

func newAwaitedSecrets() awaitedSecrets {
	return awaitedSecrets{
		requests: setmap.Map[types.NamespacedName, Request]{},
		keys:     setmap.Map[Request, types.NamespacedName]{},
		watched:  map[kindwatch.Kind]types.NamespacedName{},
	}
}

// set makes keys all that a request waits for, and says whether other Secrets are to be watched than before.
func (a *awaitedSecrets) set(req Request, keys []types.NamespacedName) (changed bool) {
	wanted := sets.New(keys...)
	for _, key := range a.keys.Values(req) {
		if wanted.Has(key) {
			continue
		}
		a.keys.Delete(req, key)
		a.requests.Delete(key, req)
		if kind := awaitedSecretKind(key); len(a.requests[key]) == 0 && a.isWatched(kind) {
			delete(a.watched, kind)
			changed = true
		}
	}
	for key := range wanted {
		a.keys.Insert(req, key)
		a.requests.Insert(key, req)
		if kind := awaitedSecretKind(key); !a.isWatched(kind) && len(a.watched) < maxAwaitedSecrets {
			a.watched[kind] = key
			changed = true
		}
	}
	return changed
}

func (a *awaitedSecrets) isWatched(kind kindwatch.Kind) bool {
	_, ok := a.watched[kind]
	return ok
}

// awaitSecrets makes keys all the Secrets whose end a claim waits for.
func (w *workload) awaitSecrets(req Request, keys ...types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.awaited.set(req, keys) {
		w.watcher.Set(ownerAwaited, slices.Collect(maps.Keys(w.awaited.watched))...)
	}
}

// forgetAwaiting ends that claims wait for Secrets.
func (w *workload) forgetAwaiting(gone func(Request) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	changed := false
	for req := range w.awaited.keys {
		if gone(req) {
			changed = w.awaited.set(req, nil) || changed
		}
	}
	if changed {
		w.watcher.Set(ownerAwaited, slices.Collect(maps.Keys(w.awaited.watched))...)
	}
}

// isAwaited is whether a kind is a Secret that is watched because it is in the way.
func (w *workload) isAwaited(kind kindwatch.Kind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.awaited.isWatched(kind)
}

// awaiting are the claims for which a Secret is in the way.
func (w *workload) awaiting(key types.NamespacedName) []Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.awaited.requests.Values(key)
}

// handleAwaitedSecret queues the claims for which a Secret was in the way when it is gone, and when the list with which the watch
// begins does not have it any more.
func (a *agent) handleAwaitedSecret(w *workload, e kindwatch.Event) {
	w.mu.Lock()
	key, ok := w.awaited.watched[e.Kind]
	w.mu.Unlock()
	gone := e.Type == kindwatch.Deleted
	if e.Type == kindwatch.StateChanged && e.State == kindwatch.StateSynced {
		_, err := w.watcher.Get(e.Kind, key)
		gone = apierrors.IsNotFound(err)
	}
	if ok && gone {
		a.hub.requirements.add(w.awaiting(key)...)
	}
}
