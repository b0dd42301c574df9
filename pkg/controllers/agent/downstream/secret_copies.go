// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package downstream

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// deleteCopies deletes connection Secrets that a claim no longer asks for, because it names another one or none. It
// deletes only our copies that the claim controls, as a live read shows.
func (r *Secrets) deleteCopies(ctx context.Context, s *Scope, wanted sets.Set[string]) error {
	for _, name := range s.Workload.Copies(s.Claim) {
		key := types.NamespacedName{Namespace: s.Namespace, Name: name}
		if wanted.Has(name) {
			continue
		}
		if seen, err := s.Workload.Watcher.Get(index.OwnedSecretKind, key); err != nil || !isCopy(seen, s.Claim) {
			continue
		}
		have := &corev1.Secret{}
		err := s.Workload.Reader.Get(ctx, key, have)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return secretProblem(err, "get", key, s.ClusterName)
		}
		if !s.Workload.Owner().IsManaged(have) || !ownership.ControlledBy(have, s.Claim) ||
			have.Annotations[index.HubSecretVersionAnnotation] == "" {
			continue
		}
		err = s.Workload.Client.Delete(ctx, have, client.Preconditions{UID: &have.UID, ResourceVersion: &have.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return secretProblem(err, "delete", key, s.ClusterName)
		}
		r.Metrics.Wrote(s.ClusterName, WriteSecret)
	}
	return nil
}

// isCopy reports whether a Secret in a workload cluster is a copy for a claim.
func isCopy(have *unstructured.Unstructured, claim *unstructured.Unstructured) bool {
	return have != nil && ownership.ControlledBy(have, claim) && have.GetAnnotations()[index.HubSecretVersionAnnotation] != ""
}

// secretProblem turns a workload cluster's answer about a Secret into a problem to report, or into an error if it is
// better retried.
func secretProblem(err error, verb string, key types.NamespacedName, cluster mcr.ClusterName) error {
	err = hubaccess.WorkloadError(
		hubaccess.MarkUnanswered(err),
		fmt.Sprintf("%s the Secret %q", verb, key.Name),
		fleetv1alpha1.ReasonSecretRejected,
	)
	return fmt.Errorf("cannot %s Secret %q in cluster %q: %w", verb, key, cluster, err)
}

// workloadSecretsUnknown returns why the Secrets that Masthead wrote into a workload cluster are unknown. Syncing the
// watch requeues the claim.
func workloadSecretsUnknown(s *Scope) error {
	switch state, message := s.Workload.Watcher.State(index.OwnedSecretKind); state {
	case kindwatch.StateForbidden:
		return &condition.Error{
			Reason:  fleetv1alpha1.ReasonWorkloadForbidden,
			Message: "Masthead lacks the right to list and watch Secrets in this cluster.",
		}
	case kindwatch.StateTooLarge, kindwatch.StateStale:
		return &condition.Error{Reason: fleetv1alpha1.ReasonSecretRejected, Message: "The connection Secret was not written: " + message + "."}
	case kindwatch.StateSynced, kindwatch.StateSyncing, kindwatch.StateNotServed, kindwatch.StateUnwatched:
	}
	return condition.PendingError{}
}

func secretMissing(from types.NamespacedName) *condition.Error {
	return &condition.Error{
		Reason: fleetv1alpha1.ReasonSecretMissing,
		Message: fmt.Sprintf("The Secret %q in the namespace %q of the hub is gone. Its copy here is kept, and may be out of date.",
			from.Name, from.Namespace),
	}
}
