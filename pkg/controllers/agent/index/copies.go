// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
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

// WroteVersion returns the recorded version of a Secret, or empty.
func (w *Cluster) WroteVersion(key types.NamespacedName) string { return w.CopyState(key).Version }

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
	if e.Old != nil {
		w.untrackCopy(e.Old)
	}
	if e.Type == kindwatch.Deleted {
		w.untrackCopy(e.Object)
		return
	}
	owner := metav1.GetControllerOfNoCopy(e.Object)
	if owner == nil {
		return
	}
	if w.copies[owner.UID] == nil {
		w.copies[owner.UID] = sets.New[string]()
	}
	w.copies[owner.UID].Insert(e.Object.GetName())
}

func (w *Cluster) untrackCopy(secret *unstructured.Unstructured) {
	owner := metav1.GetControllerOfNoCopy(secret)
	if owner == nil {
		return
	}
	w.copies[owner.UID].Delete(secret.GetName())
	if w.copies[owner.UID].Len() == 0 {
		delete(w.copies, owner.UID)
	}
}

// Copies returns the names of the Secrets with our label that an object controls. They are in its namespace.
func (w *Cluster) Copies(owner types.UID) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return sets.List(w.copies[owner])
}
