// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/objects"
)

// Wrote records the state of a Secret that Masthead wrote or verified.
func (w *Cluster) Wrote(key types.NamespacedName, state CopyState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.secrets[key] = state
}

// CopyState returns the recorded state of a Secret; empty if none is recorded.
func (w *Cluster) CopyState(key types.NamespacedName) CopyState {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.secrets[key]
}

// ForgetSecret drops the state of a deleted Secret.
func (w *Cluster) ForgetSecret(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.secrets, key)
}

// HubSecretVersionAnnotation is set on a connection Secret in a workload cluster. It names the state (UID and resource
// version) of the hub's Secret that was copied last. Unlike a hash it reveals nothing about the content, which is often
// short enough to guess.
const HubSecretVersionAnnotation = "agent.masthead.dev/hub-secret-version"

// CopyState is a copy's last state: its version, and the state of the hub's Secret it was copied from.
type CopyState struct{ Of, Version string }

// TrackCopy indexes copies by the claim that controls them.
func (w *Cluster) TrackCopy(e kindwatch.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.copies.track(e)
}

// Copies returns the names of the Secrets with our label that a claim controls.
func (w *Cluster) Copies(claim metav1.Object) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.copies.names(claim)
}

// secretIndex holds Secrets by the UID of their controller.
type secretIndex struct {
	objects.Index[types.UID, types.NamespacedName]
}

// track updates the index with an event of a Secret.
func (x secretIndex) track(e kindwatch.Event) {
	key := types.NamespacedName{Namespace: e.Object.GetNamespace(), Name: e.Object.GetName()}
	if e.Old != nil {
		if owner := metav1.GetControllerOfNoCopy(e.Old); owner != nil {
			x.Delete(owner.UID, key)
		}
	}
	switch owner := metav1.GetControllerOfNoCopy(e.Object); {
	case owner == nil:
	case e.Type == kindwatch.Deleted:
		x.Delete(owner.UID, key)
	default:
		x.Insert(owner.UID, key)
	}
}

// names returns the names of the Secrets that an object controls, in its own namespace.
func (x secretIndex) names(owner metav1.Object) []string {
	var names []string
	for key := range x.Index[owner.GetUID()] {
		if key.Namespace == owner.GetNamespace() {
			names = append(names, key.Name)
		}
	}
	slices.Sort(names)
	return names
}
