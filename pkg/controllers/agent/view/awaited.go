// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/request"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/setmap"
)

// A Secret that is not Masthead's can be in the way of a connection Secret. Masthead does not watch the Secrets of a
// workload cluster, only those that it wrote. While a claim is refused because of another one, that one is watched by
// its namespace and name, so that the claim goes on as soon as it is deleted.
//
// What is watched of it is its existence: metadata without labels, and of annotations none but our own.

// maxAwaitedSecrets is how many Secrets of one cluster are watched by their names. Each watch is a request to the
// cluster's API server and about 40 KiB. What is not watched is looked at again by SlowRetry.
const maxAwaitedSecrets = 16

// ownerAwaited asks the watcher of a workload cluster for the Secrets that are in the way.
const ownerAwaited = "awaited-secrets"

// AwaitedSecretKind watches one Secret.
func AwaitedSecretKind(key types.NamespacedName) kindwatch.Kind {
	return kindwatch.Kind{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
		Resource:         "secrets",
		MetadataOnly:     true,
		OnlyAnnotations:  HubSecretVersionAnnotation,
		FieldSelector:    fields.Set{"metadata.namespace": key.Namespace, "metadata.name": key.Name}.String(),
	}
}

// awaitedSecrets are the Secrets of a workload cluster that are in the way of claims. The mutex of the workload guards
// it.
type awaitedSecrets struct {
	// requests are the claims that wait for a Secret to go, and keys is the inverse.
	requests setmap.Map[types.NamespacedName, request.Request]
	keys     setmap.Map[request.Request, types.NamespacedName]

	// Watched are those of them that are watched.
	watched map[kindwatch.Kind]types.NamespacedName
}

func newAwaitedSecrets() awaitedSecrets {
	return awaitedSecrets{
		requests: setmap.Map[types.NamespacedName, request.Request]{},
		keys:     setmap.Map[request.Request, types.NamespacedName]{},
		watched:  map[kindwatch.Kind]types.NamespacedName{},
	}
}

// set makes keys all that a request waits for, and says whether other Secrets are to be watched than before.
func (a *awaitedSecrets) set(req request.Request, keys []types.NamespacedName) (changed bool) {
	wanted := sets.New(keys...)
	for _, key := range a.keys.Values(req) {
		if wanted.Has(key) {
			continue
		}
		a.keys.Delete(req, key)
		a.requests.Delete(key, req)
		if kind := AwaitedSecretKind(key); len(a.requests[key]) == 0 && a.isWatched(kind) {
			delete(a.watched, kind)
			changed = true
		}
	}
	for key := range wanted {
		a.keys.Insert(req, key)
		a.requests.Insert(key, req)
		if kind := AwaitedSecretKind(key); !a.isWatched(kind) && len(a.watched) < maxAwaitedSecrets {
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

// AwaitSecrets makes keys all the Secrets whose end a claim waits for.
func (w *Cluster) AwaitSecrets(req request.Request, keys ...types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.awaited.set(req, keys) {
		w.Watcher.Set(ownerAwaited, slices.Collect(maps.Keys(w.awaited.watched))...)
	}
}

// ForgetAwaiting ends that claims wait for Secrets.
func (w *Cluster) ForgetAwaiting(gone func(request.Request) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	changed := false
	for req := range w.awaited.keys {
		if gone(req) {
			changed = w.awaited.set(req, nil) || changed
		}
	}
	if changed {
		w.Watcher.Set(ownerAwaited, slices.Collect(maps.Keys(w.awaited.watched))...)
	}
}

// AwaitedSecret returns the Secret that is watched as a kind because it is in the way, if it is one.
func (w *Cluster) AwaitedSecret(kind kindwatch.Kind) (types.NamespacedName, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key, ok := w.awaited.watched[kind]
	return key, ok
}

// Awaiting are the claims for which a Secret is in the way.
func (w *Cluster) Awaiting(key types.NamespacedName) []request.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.awaited.requests.Values(key)
}
