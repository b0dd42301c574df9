// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// A Secret that Masthead did not write can occupy the name of a connection Secret. Masthead watches only the Secrets
// that it wrote in a workload cluster. While a foreign Secret blocks a claim, it is watched by namespace and name, so
// that the claim proceeds once it is deleted.
//
// Only its existence is watched: metadata without labels, and only our own annotation.

// maxAwaitedSecrets limits how many Secrets of one cluster are watched by name. Each watch is a request to the
// cluster's API server and about 40 KiB. Claims blocked by an unwatched Secret are requeued after SlowRetry.
const maxAwaitedSecrets = 16

// ownerAwaited owns the watches of blocking Secrets in a workload cluster's watcher.
const ownerAwaited = "awaited-secrets"

// AwaitedSecretKind returns the kind that watches one Secret.
func AwaitedSecretKind(key types.NamespacedName) kindwatch.Kind {
	return kindwatch.Kind{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
		Resource:         "secrets",
		MetadataOnly:     true,
		OnlyAnnotations:  HubSecretVersionAnnotation,
		FieldSelector:    fields.Set{"metadata.namespace": key.Namespace, "metadata.name": key.Name}.String(),
	}
}

// awaitedSecrets are the Secrets of a workload cluster that block claims. The workload's mutex guards it.
type awaitedSecrets struct {
	// waits are the claims that wait for the deletion of blocking Secrets.
	waits[types.NamespacedName]

	// watched are the blocking Secrets that are watched.
	watched map[kindwatch.Kind]types.NamespacedName
}

// set replaces the Secrets that a request waits for, and reports whether the set of watched Secrets changed.
func (a *awaitedSecrets) set(req multicluster.ObjectRequest, keys ...types.NamespacedName) (changed bool) {
	a.waits.set(req, keys...)
	for kind, key := range a.watched {
		if len(a.requests[key]) == 0 {
			delete(a.watched, kind)
			changed = true
		}
	}
	for _, key := range keys {
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

// AwaitSecrets replaces the Secrets whose deletion a claim waits for.
func (w *Cluster) AwaitSecrets(req multicluster.ObjectRequest, keys ...types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.awaited.set(req, keys...) {
		w.Watcher.Set(ownerAwaited, slices.Collect(maps.Keys(w.awaited.watched))...)
	}
}

// ForgetAwaiting removes the waits of claims that are gone.
func (w *Cluster) ForgetAwaiting(gone func(multicluster.ObjectRequest) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	changed := false
	for req := range w.awaited.keys[w.Name] {
		if gone(req) {
			changed = w.awaited.set(req) || changed
		}
	}
	if changed {
		w.Watcher.Set(ownerAwaited, slices.Collect(maps.Keys(w.awaited.watched))...)
	}
}

// AwaitedSecret returns the blocking Secret that a kind watches, if the kind watches one.
func (w *Cluster) AwaitedSecret(kind kindwatch.Kind) (types.NamespacedName, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key, ok := w.awaited.watched[kind]
	return key, ok
}

// Awaiting returns the claims that a Secret blocks.
func (w *Cluster) Awaiting(key types.NamespacedName) []multicluster.ObjectRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.awaited.requests.Values(key)
}
