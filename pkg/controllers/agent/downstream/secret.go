// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package downstream

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// Secrets copies Secrets from the hub to workload clusters.
type Secrets struct {
	Hub *index.Hub

	// HubReader reads the hub with the rights of the context's identity.
	HubReader client.Reader
	Metrics   *Metrics
}

// delivery is one Secret to copy from the hub to a workload cluster.
type delivery struct {
	// watched is the hub's watch that has the Secret's metadata.
	watched kindwatch.Kind

	from, to types.NamespacedName
}

// Pull copies the Secrets of the hub's object to the workload cluster.
func (r *Secrets) Pull(ctx context.Context, s *Scope, hub *unstructured.Unstructured) error {
	pull := r.pullSecret
	if s.Form == crossplane.FormComposite {
		pull = r.pullComposed
	}
	s.BlockingSecrets = nil
	err := pull(ctx, s, hub)
	if _, failed := condition.Result(err); failed == nil {
		s.Workload.AwaitSecrets(s.ObjectRequest, s.BlockingSecrets...)
	}
	return err
}

// pullSecret copies the connection Secret of the hub's claim to the workload cluster.
//
// The hub's claim decides which Secret that is: the one it writes to, in its own namespace, and only if the claim
// controls it. A workload cluster chooses the name, and could choose that of any Secret in the namespace; it gets only
// what Crossplane made for it.
func (r *Secrets) pullSecret(ctx context.Context, s *Scope, hub *unstructured.Unstructured) error {
	d := delivery{
		watched: crossplane.HubSecretKind,
		from:    types.NamespacedName{Namespace: hub.GetNamespace(), Name: crossplane.ConnectionSecretName(hub)},
		to:      types.NamespacedName{Namespace: s.Namespace, Name: crossplane.ConnectionSecretName(s.Latest())},
	}
	wanted := sets.New(d.to.Name)
	withheld := r.withheld(hub, d)
	if withheld {
		wanted.Clear()
	}
	if err := r.deleteCopies(ctx, s, wanted); err != nil {
		return err
	}
	if d.from.Name == "" || d.to.Name == "" {
		return nil
	}
	if withheld {
		return secretWithheld(d.from)
	}
	return r.pullOne(ctx, s, hub, d)
}

// pullOne copies one Secret if the hub's object controls it and the copy is not up to date.
func (r *Secrets) pullOne(
	ctx context.Context, s *Scope, hub *unstructured.Unstructured, d delivery,
) error {
	have, err := s.Workload.Watcher.Get(index.OwnedSecretKind, d.to)
	if err != nil && !apierrors.IsNotFound(err) {
		return workloadSecretsUnknown(s)
	}
	seen, err := r.Hub.Watcher.Get(d.watched, d.from)
	switch {
	case apierrors.IsNotFound(err) && isCopy(have, s.Claim):
		return secretMissing(d.from)
	case apierrors.IsNotFound(err):
		return nil // Its creation requeues the claim.
	case err != nil:
		return r.secretUnknown(d.watched)
	case !ownership.ControlledBy(seen, hub):
		return secretNotControlled(d.from)
	}
	if have != nil && upToDate(have, s.Claim, ownership.SecretVersion(seen), s.Workload.CopyState(d.to)) {
		return nil
	}
	return r.copySecret(ctx, s, hub, d)
}

// copySecret compares the Secret in the workload cluster with the hub's, both read live, and updates it.
func (r *Secrets) copySecret(
	ctx context.Context, s *Scope, hub *unstructured.Unstructured, d delivery,
) error {
	secret := &corev1.Secret{}
	err := r.HubReader.Get(ctx, d.from, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err):
		return hubaccess.MissingRight(err, "get", "Secrets", d.from.Namespace).RetriedAfter(condition.SlowRetry())
	case err != nil:
		return fmt.Errorf("cannot get Secret %q in the hub: %w", d.from, err)
	case !ownership.ControlledBy(secret, hub) || !deliverable(s.Form, secret.Type):
		return secretNotControlled(d.from)
	case isWithheld(secret):
		// The watch is behind; its event requeues the claim.
		return nil
	}
	return r.writeSecret(ctx, s, d.to, secret)
}

// isWithheld reports whether a label keeps a Secret in the hub. A value other than "true" is not guessed at: a
// delivered Secret cannot be taken back.
func isWithheld(secret metav1.Object) bool {
	value, labelled := secret.GetLabels()[fleetv1alpha1.DeliverLabel]
	return labelled && value != "true"
}

// withheld reports whether, as far as the watch knows, a delivery's Secret is the hub's object's and kept in the hub.
func (r *Secrets) withheld(hub *unstructured.Unstructured, d delivery) bool {
	seen, err := r.Hub.Watcher.Get(d.watched, d.from)
	return err == nil && ownership.ControlledBy(seen, hub) && isWithheld(seen)
}

func secretWithheld(from types.NamespacedName) *condition.Error {
	return &condition.Error{
		Reason:  fleetv1alpha1.ReasonSecretWithheld,
		Message: fmt.Sprintf("The Secret %q in the namespace %q of the hub is not copied, because of its label %s.", from.Name, from.Namespace, fleetv1alpha1.DeliverLabel),
	}
}

// deliverable reports whether Secrets of a type are copied to workload clusters.
func deliverable(f crossplane.Form, secretType corev1.SecretType) bool {
	if f == crossplane.FormComposite {
		return secretType != corev1.SecretTypeServiceAccountToken
	}
	return secretType == crossplane.SecretTypeConnection
}

// secretUnknown returns why the hub's Secret is unknown. Syncing the watch requeues the claim.
func (r *Secrets) secretUnknown(watched kindwatch.Kind) error {
	if state, _ := r.Hub.Watcher.State(watched); state == kindwatch.StateForbidden {
		p := condition.NewError(fleetv1alpha1.ReasonHubForbidden, "Masthead lacks the right to list and watch Secrets in the hub.")
		return p.RetriedAfter(condition.SlowRetry())
	}
	return condition.PendingError{}
}

// writeSecret creates or updates the Secret in the workload cluster.
func (r *Secrets) writeSecret(ctx context.Context, s *Scope, to types.NamespacedName, from *corev1.Secret) error {
	have := &corev1.Secret{}
	err := s.Workload.Reader.Get(ctx, to, have)
	if client.IgnoreNotFound(err) != nil {
		return secretProblem(err, "get", to, s.ClusterName)
	}
	exists, owner := err == nil, s.Workload.Owner()
	if other, ok := owner.Other(have); exists && ok {
		s.BlockingSecrets = append(s.BlockingSecrets, to)
		return secretConflict("The Secret %q was written by the hub %q. It was not overwritten.", to.Name, other)
	}
	controlled := ownership.ControlledBy(have, s.Claim)
	if exists && !controlled && !isOrphan(have, s.Form, owner) {
		s.BlockingSecrets = append(s.BlockingSecrets, to)
		return secretConflict("The Secret %q exists and does not belong to this claim. It was not overwritten.", to.Name)
	}
	if controlled && sameContent(have, from, owner) {
		s.Workload.Wrote(to, index.CopyState{Of: ownership.SecretVersion(from), Version: have.GetResourceVersion()})
		return nil
	}
	if exists && !changeable(have, from) {
		err := s.Workload.Client.Delete(ctx, have, client.Preconditions{UID: &have.UID, ResourceVersion: &have.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return secretProblem(err, "replace", to, s.ClusterName)
		}
		have, exists = &corev1.Secret{}, false
	}
	want := connectionSecret(have, s.Claim, to, from, owner)
	if exists {
		err = s.Workload.Client.Update(ctx, want, s.Workload.FieldOwner())
	} else {
		err = s.Workload.Client.Create(ctx, want, s.Workload.FieldOwner())
	}
	if apierrors.IsAlreadyExists(err) {
		return condition.PendingError{After: condition.Soon}
	}
	if err != nil {
		return secretProblem(err, "write", to, s.ClusterName)
	}
	s.Workload.Wrote(to, index.CopyState{Of: ownership.SecretVersion(from), Version: want.GetResourceVersion()})
	s.Workload.Watcher.Observe(index.OwnedSecretKind, to, reduceToMetadata(want))
	r.Metrics.Wrote(s.ClusterName, WriteSecret)
	return nil
}

// isOrphan reports whether a Secret is a copy of this hub's that has no owner any more. `kubectl delete
// --cascade=orphan` of its claim leaves it so, and it must not be in the way of the next claim of that name. Forging
// one gains that one's own Secret is overwritten.
func isOrphan(have *corev1.Secret, f crossplane.Form, owner hubidentity.Owner) bool {
	return len(have.OwnerReferences) == 0 && owner.IsManaged(have) && have.Annotations[index.HubSecretVersionAnnotation] != "" &&
		deliverable(f, have.Type)
}

// sameContent reports whether a copy that a claim controls matches the hub's Secret. The recorded state of the hub's
// Secret is ignored, so that changing that Secret's metadata causes no write.
func sameContent(have, from *corev1.Secret, owner hubidentity.Owner) bool {
	return have.Type == from.Type && equality.Semantic.DeepEqual(have.Data, from.Data) &&
		owner.IsStamped(have) && have.Annotations[index.HubSecretVersionAnnotation] != ""
}

// changeable reports whether an update can make a copy match the hub's Secret. The type of a Secret never changes, nor
// does the content of an immutable one.
func changeable(have, from *corev1.Secret) bool {
	return have.Type == from.Type && (have.Immutable == nil || !*have.Immutable)
}

// upToDate reports whether a Secret in a workload cluster is a copy of the hub's cached state, as far as metadata can
// tell: it is the claim's, and both are in the state in which they were compared. Without a remembered state they must
// be compared.
func upToDate(have metav1.Object, claim metav1.Object, of string, left index.CopyState) bool {
	return ownership.ControlledBy(have, claim) && left == index.CopyState{Of: of, Version: have.GetResourceVersion()}
}

// connectionSecret returns the copy of a hub's Secret for a claim: its data, owned by the claim, so that it is deleted
// with it. Metadata that others added to an existing copy stays.
func connectionSecret(
	have *corev1.Secret, claim *unstructured.Unstructured, to types.NamespacedName, from *corev1.Secret,
	owner hubidentity.Owner,
) *corev1.Secret {
	want := have.DeepCopy()
	want.Namespace, want.Name = to.Namespace, to.Name
	want.Type = from.Type
	want.Data = maps.Clone(from.Data)
	want.Labels = owner.Stamp(want.Labels)
	if want.Annotations == nil {
		want.Annotations = map[string]string{}
	}
	want.Annotations[index.HubSecretVersionAnnotation] = ownership.SecretVersion(from)
	if !ownership.ControlledBy(want, claim) {
		owner := metav1.NewControllerRef(claim, claim.GroupVersionKind())
		// Blocking the owner's deletion needs an extra right in clusters that enforce it, and nothing waits for the Secret.
		owner.BlockOwnerDeletion = nil
		want.OwnerReferences = append(want.OwnerReferences, *owner)
	}
	return want
}

// reduceToMetadata returns a Secret without its content, as the watch keeps it.
func reduceToMetadata(secret *corev1.Secret) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(index.OwnedSecretKind.GroupVersionKind)
	out.SetNamespace(secret.Namespace)
	out.SetName(secret.Name)
	out.SetUID(secret.UID)
	out.SetResourceVersion(secret.ResourceVersion)
	out.SetLabels(secret.Labels)
	out.SetAnnotations(secret.Annotations)
	out.SetOwnerReferences(secret.OwnerReferences)
	return out
}

func secretConflict(format string, args ...any) error {
	return condition.NewError(fleetv1alpha1.ReasonSecretConflict, fmt.Sprintf(format, args...)).RetriedAfter(condition.SlowRetry())
}

func secretNotControlled(from types.NamespacedName) error {
	return condition.NewError(fleetv1alpha1.ReasonSecretNotControlled, fmt.Sprintf(
		"The Secret %q in the namespace %q of the hub does not belong to the object of this claim there. It was not copied.",
		from.Name, from.Namespace)).RetriedAfter(condition.SlowRetry())
}
