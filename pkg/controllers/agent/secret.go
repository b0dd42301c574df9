// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// HubSecretVersionAnnotation is set on a connection Secret in a workload cluster and names the state of the hub's Secret
// from which its content was copied last, by UID and resource version. Unlike a hash it says nothing about the content, which is often short
// enough to be guessed.
const HubSecretVersionAnnotation = "agent.masthead.dev/hub-secret-version"

// delivery is one Secret that is brought from the hub to a workload cluster.
type delivery struct {
	// watched is the watch of the hub that knows the Secret's metadata.
	watched kindwatch.Kind

	from, to types.NamespacedName
}

// pullSecrets brings what the hub's object has made for its requirement to the workload cluster.
func (r *requirementReconciler) pullSecrets(ctx context.Context, s *scope, hub *unstructured.Unstructured) (*problem, time.Duration, error) {
	pull := r.pullSecret
	if s.form == formComposite {
		pull = r.pullComposed
	}
	s.inTheWay = nil
	p, retryAfter, err := pull(ctx, s, hub)
	if err == nil {
		s.workload.awaitSecrets(s.Request, s.inTheWay...)
	}
	return p, retryAfter, err
}

// pullSecret brings the connection Secret of the hub's claim to the workload cluster.
//
// Which Secret that is, is decided by the hub's claim: the name that it writes to, in its own namespace, and only if the
// claim controls the Secret of that name. A workload cluster chooses the name, and could choose that of any Secret in the
// namespace; it gets what Crossplane made for it and nothing else.
func (r *requirementReconciler) pullSecret(ctx context.Context, s *scope, hub *unstructured.Unstructured) (*problem, time.Duration, error) {
	d := delivery{
		watched: hubSecretKind,
		from:    types.NamespacedName{Namespace: hub.GetNamespace(), Name: connectionSecretName(hub)},
		to:      types.NamespacedName{Namespace: s.Namespace, Name: connectionSecretName(s.claim)},
	}
	wanted := sets.New(d.to.Name)
	withheld := r.withheld(hub, d)
	if withheld {
		wanted.Clear()
	}
	if p, retryAfter, err := r.deleteCopies(ctx, s, wanted); p != nil || err != nil {
		return p, retryAfter, err
	}
	if d.from.Name == "" || d.to.Name == "" {
		return nil, 0, nil
	}
	if withheld {
		return secretWithheld(d.from), 0, nil
	}
	return r.pullOne(ctx, s, hub, d)
}

// pullOne brings one Secret, if the hub's object controls it and the copy is not what it should be already.
func (r *requirementReconciler) pullOne(
	ctx context.Context, s *scope, hub *unstructured.Unstructured, d delivery,
) (*problem, time.Duration, error) {
	have, err := s.workload.watcher.Get(ownedSecretKind, d.to)
	if err != nil && !apierrors.IsNotFound(err) {
		// Its becoming known makes a new request.
		return workloadSecretsUnknown(s), 0, nil
	}
	seen, err := r.hub.watcher.Get(d.watched, d.from)
	switch {
	case apierrors.IsNotFound(err) && isCopy(have, s.claim):
		return secretMissing(d.from), 0, nil
	case err != nil:
		if p := r.secretUnknown(d.watched); p != nil && !apierrors.IsNotFound(err) {
			return p, slowRetry(), nil
		}
		// Its coming makes a new request.
		return nil, 0, nil
	case !controlledBy(seen, hub):
		return secretNotControlled(d.from), slowRetry(), nil
	}
	if have != nil && upToDate(have, s.claim, versionOf(seen), s.workload.copyState(d.to)) {
		return nil, 0, nil
	}
	return r.copySecret(ctx, s, hub, d)
}

// copySecret compares the Secret in the workload cluster with the hub's as they are, and makes it the same.
func (r *requirementReconciler) copySecret(
	ctx context.Context, s *scope, hub *unstructured.Unstructured, d delivery,
) (*problem, time.Duration, error) {
	secret := &corev1.Secret{}
	err := r.hubReader.Get(ctx, d.from, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, 0, nil
	case apierrors.IsForbidden(err):
		return lacking(err, "get", "Secrets", d.from.Namespace), slowRetry(), nil
	case err != nil:
		return nil, 0, fmt.Errorf("cannot get Secret %q in the hub: %w", d.from, err)
	case !controlledBy(secret, hub) || !deliverable(s.form, secret.Type):
		return secretNotControlled(d.from), slowRetry(), nil
	case isWithheld(secret):
		// The watch is behind; its event makes a new request.
		return nil, 0, nil
	}
	return r.writeSecret(ctx, s, d.to, secret)
}

// isWithheld is whether a label keeps a Secret in the hub. What it could mean other than "true" is not guessed at: a Secret that
// was delivered cannot be taken back.
func isWithheld(secret metav1.Object) bool {
	value, labelled := secret.GetLabels()[fleetv1alpha1.DeliverLabel]
	return labelled && value != "true"
}

// withheld is whether the Secret of a delivery is the hub's object's and is kept in the hub, as far as the watch knows.
func (r *requirementReconciler) withheld(hub *unstructured.Unstructured, d delivery) bool {
	seen, err := r.hub.watcher.Get(d.watched, d.from)
	return err == nil && controlledBy(seen, hub) && isWithheld(seen)
}

func secretWithheld(from types.NamespacedName) *problem {
	return &problem{
		reason:  ReasonSecretWithheld,
		message: fmt.Sprintf("The Secret %q in the namespace %q of the hub is kept there by its label %s.", from.Name, from.Namespace, fleetv1alpha1.DeliverLabel),
	}
}

// deliverable is whether a Secret of the hub is of a type that is brought to a workload cluster.
func deliverable(f form, secretType corev1.SecretType) bool {
	if f == formComposite {
		return secretType != corev1.SecretTypeServiceAccountToken
	}
	return secretType == secretTypeConnection
}

// secretUnknown is why the hub's Secret is not known, if that is something that a user should know.
func (r *requirementReconciler) secretUnknown(watched kindwatch.Kind) *problem {
	if state, _ := r.hub.watcher.State(watched); state == kindwatch.StateForbidden {
		return &problem{reason: ReasonForbidden, message: "Masthead lacks the right to list and watch Secrets in the hub."}
	}
	return nil
}

// writeSecret creates or corrects the Secret in the workload cluster.
func (r *requirementReconciler) writeSecret(ctx context.Context, s *scope, to types.NamespacedName, from *corev1.Secret) (*problem, time.Duration, error) {
	have := &corev1.Secret{}
	err := s.workload.reader.Get(ctx, to, have)
	if client.IgnoreNotFound(err) != nil {
		return secretProblem(err, "get", to, s.ClusterName)
	}
	exists, owner := err == nil, s.workload.owner()
	if other, ok := owner.Other(have); exists && ok {
		s.inTheWay = append(s.inTheWay, to)
		return &problem{
			reason:  ReasonSecretConflict,
			message: fmt.Sprintf("The Secret %q was written by the hub %q. It was not overwritten.", to.Name, other),
		}, slowRetry(), nil
	}
	if exists && !controlledBy(have, s.claim) {
		s.inTheWay = append(s.inTheWay, to)
		return &problem{
			reason:  ReasonSecretConflict,
			message: fmt.Sprintf("The Secret %q exists and does not belong to this claim. It was not overwritten.", to.Name),
		}, slowRetry(), nil
	}
	if exists && sameContent(have, from, owner) {
		s.workload.wrote(to, copyState{of: versionOf(from), version: have.GetResourceVersion()})
		return nil, 0, nil
	}
	if exists && !changeable(have, from) {
		err := s.workload.client.Delete(ctx, have, client.Preconditions{UID: &have.UID, ResourceVersion: &have.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return secretProblem(err, "replace", to, s.ClusterName)
		}
		have, exists = &corev1.Secret{}, false
	}
	want := connectionSecret(have, s.claim, to, from, owner)
	if exists {
		err = s.workload.client.Update(ctx, want, s.workload.fieldOwner())
	} else {
		err = s.workload.client.Create(ctx, want, s.workload.fieldOwner())
	}
	if apierrors.IsAlreadyExists(err) {
		return nil, soon, nil
	}
	if err != nil {
		return secretProblem(err, "write", to, s.ClusterName)
	}
	s.workload.wrote(to, copyState{of: versionOf(from), version: want.GetResourceVersion()})
	s.workload.watcher.Observe(ownedSecretKind, metadataOf(want))
	r.metrics.wrote(s.ClusterName, writeSecret)
	return nil, 0, nil
}

// sameContent is whether a copy that a claim controls says what the hub's Secret says. Of which state of the hub's Secret it
// says that it is a copy makes no difference, so that a change of that Secret's metadata is no reason to write.
func sameContent(have, from *corev1.Secret, owner hubidentity.Owner) bool {
	return have.Type == from.Type && equality.Semantic.DeepEqual(have.Data, from.Data) &&
		owner.IsStamped(have) && have.Annotations[HubSecretVersionAnnotation] != ""
}

// changeable is whether a copy can be made what the hub's Secret is by an update. The type of a Secret never changes, nor does
// the content of one that somebody made immutable.
func changeable(have, from *corev1.Secret) bool {
	return have.Type == from.Type && (have.Immutable == nil || !*have.Immutable)
}

// copyState is how a copy was left: in which version, and of which state of the hub's Secret.
type copyState struct{ of, version string }

// upToDate is whether a Secret in a workload cluster is a copy of the state of the hub's that is known, as far as metadata
// can tell: it is the claim's, and both are in the state in which we compared them. One of which we do not remember how we
// left it has to be compared.
func upToDate(have metav1.Object, claim metav1.Object, of string, left copyState) bool {
	return controlledBy(have, claim) && left == copyState{of: of, version: have.GetResourceVersion()}
}

// versionOf identifies a state of a Secret of the hub.
func versionOf(secret metav1.Object) string {
	return string(secret.GetUID()) + "/" + secret.GetResourceVersion()
}

// connectionSecret is the copy of a Secret of the hub for a claim: its data, owned by the claim, so that it goes with it.
// What others have put into the metadata of an existing copy stays.
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
	want.Annotations[HubSecretVersionAnnotation] = versionOf(from)
	if !controlledBy(want, claim) {
		owner := metav1.NewControllerRef(claim, claim.GroupVersionKind())
		// Blocking the owner's deletion is a right of its own in clusters that enforce it, and nothing waits for the Secret.
		owner.BlockOwnerDeletion = nil
		want.OwnerReferences = append(want.OwnerReferences, *owner)
	}
	return want
}

// metadataOf is a Secret without its content, as the watch keeps it.
func metadataOf(secret *corev1.Secret) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(ownedSecretKind.GroupVersionKind)
	out.SetNamespace(secret.Namespace)
	out.SetName(secret.Name)
	out.SetUID(secret.UID)
	out.SetResourceVersion(secret.ResourceVersion)
	out.SetLabels(secret.Labels)
	out.SetAnnotations(secret.Annotations)
	out.SetOwnerReferences(secret.OwnerReferences)
	return out
}

func secretNotControlled(from types.NamespacedName) *problem {
	return &problem{
		reason:  ReasonSecretNotControlled,
		message: fmt.Sprintf("The Secret %q in the namespace %q of the hub does not belong to the object of this claim there. It was not copied.", from.Name, from.Namespace),
	}
}
