// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package down

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
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/answer"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/metrics"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/scope"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/view"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// Secrets copies Secrets from the hub to workload clusters.
type Secrets struct {
	Hub *view.Hub

	// HubReader is the hub with the rights of the identity of the context.
	HubReader client.Reader
	Metrics   *metrics.Metrics
}

// delivery is one Secret that is brought from the hub to a workload cluster.
type delivery struct {
	// watched is the watch of the hub that knows the Secret's metadata.
	watched kindwatch.Kind

	from, to types.NamespacedName
}

// Pull brings what the hub's object has made for its requirement to the workload cluster.
func (r *Secrets) Pull(ctx context.Context, s *scope.Scope, hub *unstructured.Unstructured) (*condition.Problem, time.Duration, error) {
	pull := r.pullSecret
	if s.Form == crossplane.FormComposite {
		pull = r.pullComposed
	}
	s.InTheWay = nil
	p, retryAfter, err := pull(ctx, s, hub)
	if err == nil {
		s.Workload.AwaitSecrets(s.Request, s.InTheWay...)
	}
	return p, retryAfter, err
}

// pullSecret brings the connection Secret of the hub's claim to the workload cluster.
//
// Which Secret that is, is decided by the hub's claim: the name that it writes to, in its own namespace, and only if
// the claim controls the Secret of that name. A workload cluster chooses the name, and could choose that of any Secret
// in the namespace; it gets what Crossplane made for it and nothing else.
func (r *Secrets) pullSecret(ctx context.Context, s *scope.Scope, hub *unstructured.Unstructured) (*condition.Problem, time.Duration, error) {
	d := delivery{
		watched: crossplane.HubSecretKind,
		from:    types.NamespacedName{Namespace: hub.GetNamespace(), Name: crossplane.ConnectionSecretName(hub)},
		to:      types.NamespacedName{Namespace: s.Namespace, Name: crossplane.ConnectionSecretName(s.Claim)},
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
func (r *Secrets) pullOne(
	ctx context.Context, s *scope.Scope, hub *unstructured.Unstructured, d delivery,
) (*condition.Problem, time.Duration, error) {
	have, err := s.Workload.Watcher.Get(view.OwnedSecretKind, d.to)
	if err != nil && !apierrors.IsNotFound(err) {
		// Its becoming known makes a new request.
		return workloadSecretsUnknown(s), 0, nil
	}
	seen, err := r.Hub.Watcher.Get(d.watched, d.from)
	switch {
	case apierrors.IsNotFound(err) && isCopy(have, s.Claim):
		return secretMissing(d.from), 0, nil
	case err != nil:
		if p := r.secretUnknown(d.watched); p != nil && !apierrors.IsNotFound(err) {
			return p, condition.SlowRetry(), nil
		}
		// Its coming makes a new request.
		return nil, 0, nil
	case !ownership.ControlledBy(seen, hub):
		return secretNotControlled(d.from), condition.SlowRetry(), nil
	}
	if have != nil && upToDate(have, s.Claim, ownership.VersionOf(seen), s.Workload.CopyState(d.to)) {
		return nil, 0, nil
	}
	return r.copySecret(ctx, s, hub, d)
}

// copySecret compares the Secret in the workload cluster with the hub's as they are, and makes it the same.
func (r *Secrets) copySecret(
	ctx context.Context, s *scope.Scope, hub *unstructured.Unstructured, d delivery,
) (*condition.Problem, time.Duration, error) {
	secret := &corev1.Secret{}
	err := r.HubReader.Get(ctx, d.from, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, 0, nil
	case apierrors.IsForbidden(err):
		return answer.MissingRight(err, "get", "Secrets", d.from.Namespace), condition.SlowRetry(), nil
	case err != nil:
		return nil, 0, fmt.Errorf("cannot get Secret %q in the hub: %w", d.from, err)
	case !ownership.ControlledBy(secret, hub) || !deliverable(s.Form, secret.Type):
		return secretNotControlled(d.from), condition.SlowRetry(), nil
	case isWithheld(secret):
		// The watch is behind; its event makes a new request.
		return nil, 0, nil
	}
	return r.writeSecret(ctx, s, d.to, secret)
}

// isWithheld is whether a label keeps a Secret in the hub. What it could mean other than "true" is not guessed at: a
// Secret that was delivered cannot be taken back.
func isWithheld(secret metav1.Object) bool {
	value, labelled := secret.GetLabels()[fleetv1alpha1.DeliverLabel]
	return labelled && value != "true"
}

// withheld is whether the Secret of a delivery is the hub's object's and is kept in the hub, as far as the watch knows.
func (r *Secrets) withheld(hub *unstructured.Unstructured, d delivery) bool {
	seen, err := r.Hub.Watcher.Get(d.watched, d.from)
	return err == nil && ownership.ControlledBy(seen, hub) && isWithheld(seen)
}

func secretWithheld(from types.NamespacedName) *condition.Problem {
	return &condition.Problem{
		Reason:  reason.ReasonSecretWithheld,
		Message: fmt.Sprintf("The Secret %q in the namespace %q of the hub is kept there by its label %s.", from.Name, from.Namespace, fleetv1alpha1.DeliverLabel),
	}
}

// deliverable is whether a Secret of the hub is of a type that is brought to a workload cluster.
func deliverable(f crossplane.Form, secretType corev1.SecretType) bool {
	if f == crossplane.FormComposite {
		return secretType != corev1.SecretTypeServiceAccountToken
	}
	return secretType == crossplane.SecretTypeConnection
}

// secretUnknown is why the hub's Secret is not known, if that is something that a user should know.
func (r *Secrets) secretUnknown(watched kindwatch.Kind) *condition.Problem {
	if state, _ := r.Hub.Watcher.State(watched); state == kindwatch.StateForbidden {
		return &condition.Problem{Reason: reason.ReasonForbidden, Message: "Masthead lacks the right to list and watch Secrets in the hub."}
	}
	return nil
}

// writeSecret creates or corrects the Secret in the workload cluster.
func (r *Secrets) writeSecret(ctx context.Context, s *scope.Scope, to types.NamespacedName, from *corev1.Secret) (*condition.Problem, time.Duration, error) {
	have := &corev1.Secret{}
	err := s.Workload.Reader.Get(ctx, to, have)
	if client.IgnoreNotFound(err) != nil {
		return secretProblem(err, "get", to, s.ClusterName)
	}
	exists, owner := err == nil, s.Workload.Owner()
	if other, ok := owner.Other(have); exists && ok {
		s.InTheWay = append(s.InTheWay, to)
		return &condition.Problem{
			Reason:  reason.ReasonSecretConflict,
			Message: fmt.Sprintf("The Secret %q was written by the hub %q. It was not overwritten.", to.Name, other),
		}, condition.SlowRetry(), nil
	}
	if exists && !ownership.ControlledBy(have, s.Claim) {
		s.InTheWay = append(s.InTheWay, to)
		return &condition.Problem{
			Reason:  reason.ReasonSecretConflict,
			Message: fmt.Sprintf("The Secret %q exists and does not belong to this claim. It was not overwritten.", to.Name),
		}, condition.SlowRetry(), nil
	}
	if exists && sameContent(have, from, owner) {
		s.Workload.Wrote(to, view.CopyState{Of: ownership.VersionOf(from), Version: have.GetResourceVersion()})
		return nil, 0, nil
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
		return nil, condition.Soon, nil
	}
	if err != nil {
		return secretProblem(err, "write", to, s.ClusterName)
	}
	s.Workload.Wrote(to, view.CopyState{Of: ownership.VersionOf(from), Version: want.GetResourceVersion()})
	s.Workload.Watcher.Observe(view.OwnedSecretKind, to, metadataOf(want))
	r.Metrics.Wrote(s.ClusterName, metrics.WriteSecret)
	return nil, 0, nil
}

// sameContent is whether a copy that a claim controls says what the hub's Secret says. Of which state of the hub's
// Secret it says that it is a copy makes no difference, so that a change of that Secret's metadata is no reason to
// write.
func sameContent(have, from *corev1.Secret, owner hubidentity.Owner) bool {
	return have.Type == from.Type && equality.Semantic.DeepEqual(have.Data, from.Data) &&
		owner.IsStamped(have) && have.Annotations[view.HubSecretVersionAnnotation] != ""
}

// changeable is whether a copy can be made what the hub's Secret is by an update. The type of a Secret never changes,
// nor does the content of one that somebody made immutable.
func changeable(have, from *corev1.Secret) bool {
	return have.Type == from.Type && (have.Immutable == nil || !*have.Immutable)
}

// upToDate is whether a Secret in a workload cluster is a copy of the state of the hub's that is known, as far as
// metadata can tell: it is the claim's, and both are in the state in which we compared them. One of which we do not
// remember how we left it has to be compared.
func upToDate(have metav1.Object, claim metav1.Object, of string, left view.CopyState) bool {
	return ownership.ControlledBy(have, claim) && left == view.CopyState{Of: of, Version: have.GetResourceVersion()}
}

// connectionSecret is the copy of a Secret of the hub for a claim: its data, owned by the claim, so that it goes with
// it. What others have put into the metadata of an existing copy stays.
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
	want.Annotations[view.HubSecretVersionAnnotation] = ownership.VersionOf(from)
	if !ownership.ControlledBy(want, claim) {
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
	out.SetGroupVersionKind(view.OwnedSecretKind.GroupVersionKind)
	out.SetNamespace(secret.Namespace)
	out.SetName(secret.Name)
	out.SetUID(secret.UID)
	out.SetResourceVersion(secret.ResourceVersion)
	out.SetLabels(secret.Labels)
	out.SetAnnotations(secret.Annotations)
	out.SetOwnerReferences(secret.OwnerReferences)
	return out
}

func secretNotControlled(from types.NamespacedName) *condition.Problem {
	return &condition.Problem{
		Reason:  reason.ReasonSecretNotControlled,
		Message: fmt.Sprintf("The Secret %q in the namespace %q of the hub does not belong to the object of this claim there. It was not copied.", from.Name, from.Namespace),
	}
}
