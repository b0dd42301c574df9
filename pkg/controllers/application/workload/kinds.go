// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/health"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

const (
	// unansweredFor is how long a group and version that the API server did not answer for is not requested again.
	unansweredFor = 10 * time.Second

	// maxLag is how far serving can be behind discovery in an API server.
	maxLag = 20 * time.Second
)

// NamedKind is a kind that an Application names, or named, and the result of resolving it.
type NamedKind struct {
	GVK schema.GroupVersionKind

	// Kind is the watched kind, if Unseen is nil or the watch is not ready.
	Kind    kindwatch.Kind
	Watched bool

	// Unseen says why the objects of the kind cannot be seen, and when to resolve it again; nil if they can.
	Unseen *condition.Error

	// Syncing reports whether the objects have not been listed yet, and may be soon.
	Syncing bool

	// Leaving reports whether the Application no longer names the kind. It is watched until none of its objects is owned
	// any more.
	Leaving bool
}

// Kinds are the kinds that an Application names. Two versions of a kind are two kinds here: each is watched as named,
// although the objects are the same, because Masthead does not decide which version determines health.
func Kinds(app *appsv1alpha1.Application) map[schema.GroupVersionKind]struct{} {
	out := make(map[schema.GroupVersionKind]struct{}, len(app.Spec.Components))
	for _, c := range app.Spec.Components {
		out[schema.GroupVersionKind{Group: c.Group, Version: c.Version, Kind: c.Kind}] = struct{}{}
	}
	return out
}

// Ask resolves a kind in the cluster. Each group and version is requested from the API server once.
func (w *Cluster) Ask(ctx context.Context, gvk schema.GroupVersionKind, assessor health.Assessor) NamedKind {
	k := NamedKind{GVK: gvk}
	if gvk == record.ApplicationKind.GroupVersionKind {
		k.Kind, k.Watched = record.ApplicationKind, true
		return k
	}
	if w.isUnanswered(gvk.GroupVersion()) {
		return k.unanswered()
	}
	ctx, cancel := context.WithTimeout(ctx, w.requestTimeout)
	defer cancel()
	kind, err := w.resolver.Resolve(ctx, gvk)
	switch {
	case kindwatch.IsNotServed(err):
		k.Unseen = StateProblem(kindwatch.StateNotServed, gvk)
		k.Unseen.RetryAfter = w.askAgain(err)
	case kindwatch.IsForbidden(err):
		k.Unseen = condition.NewError(appsv1alpha1.ReasonKindForbidden, fmt.Sprintf(
			"The cluster does not let Masthead discover which kinds %s has.", multicluster.BoundedText(gvk.GroupVersion().String())))
		k.Unseen.RetryAfter = max(condition.SlowRetry(), kindwatch.RetryAfter(err))
	case err != nil:
		w.setUnanswered(gvk.GroupVersion())
		return k.unanswered()
	case kind.ClusterScoped:
		k.Kind, k.Unseen = kind, ClusterScoped(gvk)
	default:
		k.Kind, k.Watched = kind, true
	}
	k.Kind.MetadataOnly = !assessor.NeedsObject(gvk.GroupKind())
	return k
}

// ClusterScoped is the problem that a spec names components of a cluster-scoped kind.
func ClusterScoped(gvk schema.GroupVersionKind) *condition.Error {
	return &condition.Error{Reason: appsv1alpha1.ReasonClusterScoped, Message: fmt.Sprintf(
		"Objects of the kind %s have no namespace, so they cannot belong to an Application.", Describe(gvk))}
}

// unanswered is a kind for which the API server did not answer.
func (k *NamedKind) unanswered() NamedKind {
	out := *k
	out.Unseen = &condition.Error{Reason: appsv1alpha1.ReasonSyncing, RetryAfter: unansweredFor, Message: fmt.Sprintf(
		"The cluster does not respond to the request for the kinds of %s.", multicluster.BoundedText(k.GVK.GroupVersion().String()))}
	out.Syncing = true
	return out
}

// askAgain is when to ask again for a kind that is not served. Once definitions and API services are watched, a new one
// triggers an event that invalidates what was resolved before. For a short time after it, the API server may not serve
// yet what it announces.
func (w *Cluster) askAgain(err error) time.Duration {
	after := kindwatch.RetryAfter(err)
	definitions, _ := w.Watcher.State(record.DefinitionKind)
	groups, _ := w.Watcher.State(record.APIServiceKind)
	if after > maxLag && definitions == kindwatch.StateSynced && groups == kindwatch.StateSynced {
		return 0
	}
	return max(after, Coalescing)
}

// StateProblem says why the objects of a watched kind cannot be observed; nil if they can. It depends only on the
// state: request errors vary, and would change the status all the time.
func StateProblem(state kindwatch.State, gvk schema.GroupVersionKind) *condition.Error {
	switch state {
	case kindwatch.StateSynced:
		return nil
	case kindwatch.StateNotServed:
		return &condition.Error{Reason: appsv1alpha1.ReasonKindNotServed, Message: fmt.Sprintf("The cluster does not serve %s.", Describe(gvk))}
	case kindwatch.StateForbidden:
		return &condition.Error{Reason: appsv1alpha1.ReasonKindForbidden, Message: fmt.Sprintf("The cluster does not let Masthead list and watch %s.", Describe(gvk))}
	case kindwatch.StateTooLarge:
		return &condition.Error{Reason: appsv1alpha1.ReasonKindTooLarge, Message: fmt.Sprintf("The cluster has more of %s than Masthead keeps.", Describe(gvk))}
	case kindwatch.StateStale:
		return &condition.Error{Reason: appsv1alpha1.ReasonKindStale, Message: fmt.Sprintf("The cluster has not let Masthead list and watch %s for some minutes.", Describe(gvk))}
	case kindwatch.StateSyncing, kindwatch.StateUnwatched:
	}
	return &condition.Error{Reason: appsv1alpha1.ReasonSyncing, Message: fmt.Sprintf("The objects of %s have not been read yet.", Describe(gvk))}
}

// Describe formats a kind for messages, such as "StatefulSet (apps/v1)".
func Describe(gvk schema.GroupVersionKind) string {
	return multicluster.BoundedText(fmt.Sprintf("%s (%s)", gvk.Kind, gvk.GroupVersion()))
}
