// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/controllers/application/definition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/healthcheck"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// IsThere reports whether the watch has an Application of this UID that is not being deleted.
func (w *Cluster) IsThere(key record.ApplicationKey, uid types.UID) bool {
	entry, err := w.Watcher.Entry(record.ApplicationKind, key)
	if err != nil || entry.UID != uid {
		return false
	}
	rec := record.GetComponent(entry.Record)
	return rec != nil && !rec.Deleting
}

// LiveUID asks the API server for the UID of an Application. It is empty if there is none, or if it is being deleted.
func (w *Cluster) LiveUID(ctx context.Context, key record.ApplicationKey) (types.UID, error) {
	ctx, cancel := context.WithTimeout(ctx, w.requestTimeout)
	defer cancel()
	live, err := w.Metadata.Resource(record.ApplicationKind.GroupVersionResource()).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", err
	case live.DeletionTimestamp != nil:
		return "", nil
	}
	return live.UID, nil
}

// Pods are the Pods of health checks that an Application controls.
func (w *Cluster) Pods(uid types.UID) ([]healthcheck.Record, error) {
	entries, err := w.Watcher.Lookup(record.HealthCheckPodKind, record.OwnerIndex(uid))
	if err != nil {
		return nil, err
	}
	var pods []healthcheck.Record
	for _, e := range entries {
		if pod, ok := e.Record.(*record.Pod); ok {
			pods = append(pods, pod.Record)
		}
	}
	return pods, nil
}

// SeeDefinition returns the watched metadata of the definition of Applications, nil if there is none, and the state of
// the watch. A definition without Masthead's label has a separate watch.
func (w *Cluster) SeeDefinition() (*definition.Seen, kindwatch.State) {
	key := types.NamespacedName{Name: definition.Name}
	// The state is read before the data, so that a change in between causes an extra event, and never a missed definition.
	state, _ := w.Watcher.State(record.OwnedDefinitionKind)
	crd, err := w.Watcher.Get(record.OwnedDefinitionKind, key)
	switch {
	case state != kindwatch.StateSynced:
		return nil, state
	case err == nil:
		w.Watcher.Release(OwnerForeign)
		seen := definition.SeenIn(crd)
		return &seen, state
	case !apierrors.IsNotFound(err):
		return nil, kindwatch.StateSyncing
	}
	w.Watcher.Set(OwnerForeign, record.ForeignDefinitionKind)
	state, _ = w.Watcher.State(record.ForeignDefinitionKind)
	entry, err := w.Watcher.Entry(record.ForeignDefinitionKind, key)
	rec, _ := entry.Record.(*record.Definition)
	switch {
	case state != kindwatch.StateSynced || apierrors.IsNotFound(err):
		return nil, state
	case err != nil || rec == nil:
		return nil, kindwatch.StateSyncing
	}
	return rec.Seen, state
}
