// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// deleteCopies deletes the connection Secrets of a claim that the claim does not ask for any more, because it names another
// one now or none. Only what is a copy of ours and controlled by the claim is deleted, as a live read shows it.
func (r *requirementReconciler) deleteCopies(ctx context.Context, s *scope, wanted sets.Set[string]) (*problem, time.Duration, error) {
	for _, name := range s.workload.copiesOf(s.claim.GetUID()) {
		key := types.NamespacedName{Namespace: s.Namespace, Name: name}
		if wanted.Has(name) {
			continue
		}
		if seen, err := s.workload.watcher.Get(ownedSecretKind, key); err != nil || !isCopy(seen, s.claim) {
			continue
		}
		have := &corev1.Secret{}
		err := s.workload.reader.Get(ctx, key, have)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return secretProblem(err, "get", key, s.ClusterName)
		}
		if !s.workload.owner().IsManaged(have) || !controlledBy(have, s.claim) || have.Annotations[HubSecretVersionAnnotation] == "" {
			continue
		}
		err = s.workload.client.Delete(ctx, have, client.Preconditions{UID: &have.UID, ResourceVersion: &have.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return secretProblem(err, "delete", key, s.ClusterName)
		}
		r.metrics.wrote(s.ClusterName, writeSecret)
	}
	return nil, 0, nil
}

// isCopy is whether a Secret in a workload cluster is a copy that was made for a claim.
func isCopy(have *unstructured.Unstructured, claim *unstructured.Unstructured) bool {
	return have != nil && controlledBy(have, claim) && have.GetAnnotations()[HubSecretVersionAnnotation] != ""
}

// secretProblem turns what a workload cluster answered about a Secret into what the user should know, or into an error if it
// is better retried.
func secretProblem(err error, verb string, key types.NamespacedName, cluster mcr.ClusterName) (*problem, time.Duration, error) {
	p := workloadProblem(err, fmt.Sprintf("%s the Secret %q", verb, key.Name), ReasonSecretRejected)
	if p == nil {
		return nil, 0, fmt.Errorf("cannot %s Secret %q in cluster %q: %w", verb, key, cluster, err)
	}
	return p, slowRetry(), nil
}

// workloadProblem turns the answer of a workload cluster that will be the same if the question is repeated into what the user
// should know, or returns nil.
func workloadProblem(err error, what, rejected string) *problem {
	switch {
	case apierrors.IsForbidden(err) && missingRight.MatchString(err.Error()):
		return &problem{reason: ReasonWorkloadForbidden, message: fmt.Sprintf("Masthead lacks the right to %s in this cluster.", what)}
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err),
		isMissingNamespace(err), apierrors.IsMethodNotSupported(err):
		return &problem{reason: rejected, message: fmt.Sprintf("This cluster does not let Masthead %s: %s", what, multicluster.BoundedText(err.Error()))}
	}
	return nil
}

// workloadSecretsUnknown is why the Secrets that Masthead wrote into a workload cluster are not known, or nil if they will be
// in a moment.
func workloadSecretsUnknown(s *scope) *problem {
	switch state, message := s.workload.watcher.State(ownedSecretKind); state {
	case kindwatch.StateForbidden:
		return &problem{reason: ReasonWorkloadForbidden, message: "Masthead lacks the right to list and watch Secrets in this cluster."}
	case kindwatch.StateTooLarge, kindwatch.StateStale:
		return &problem{reason: ReasonSecretRejected, message: "The connection Secret was not written: " + message + "."}
	case kindwatch.StateSynced, kindwatch.StateSyncing, kindwatch.StateNotServed, kindwatch.StateUnwatched:
	}
	return nil
}

func secretMissing(from types.NamespacedName) *problem {
	return &problem{
		reason: ReasonSecretMissing,
		message: fmt.Sprintf("The Secret %q in the namespace %q of the hub is gone. Its copy here is kept, and may be out of date.",
			from.Name, from.Namespace),
	}
}

// trackCopy keeps the index of the copies by the claim that controls them.
func (w *workload) trackCopy(e kindwatch.Event) {
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

func (w *workload) untrackCopy(secret *unstructured.Unstructured) {
	owner := metav1.GetControllerOfNoCopy(secret)
	if owner == nil {
		return
	}
	w.copies[owner.UID].Delete(secret.GetName())
	if w.copies[owner.UID].Len() == 0 {
		delete(w.copies, owner.UID)
	}
}

// copiesOf returns the names of the Secrets with our label that an object controls. They are in its namespace.
func (w *workload) copiesOf(owner types.UID) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return sets.List(w.copies[owner])
}
