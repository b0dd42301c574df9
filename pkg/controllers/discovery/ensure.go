// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

const (
	// maxWrites is how much is written in one pass.
	maxWrites = 200

	// soon is when something is looked at again that the watch has not reported yet.
	soon = time.Second
)

// reasonSet are the reasons for which something cannot be put into a cluster. An empty one is not a problem.
type reasonSet struct{ foreign, rejected, forbidden, tooLarge, notServed string }

var (
	definitionReasons = reasonSet{ //nolint:gochecknoglobals // A constant.
		foreign: ReasonDefinitionForeign, rejected: ReasonDefinitionRejected, forbidden: ReasonDefinitionForbidden,
		tooLarge: ReasonDefinitionRejected,
	}
	objectReasons = reasonSet{ //nolint:gochecknoglobals // A constant.
		foreign: ReasonObjectForeign, rejected: ReasonObjectRejected, forbidden: ReasonObjectsForbidden,
		tooLarge: ReasonObjectsTooLarge,
	}
	policyReasons = reasonSet{ //nolint:gochecknoglobals // A constant.
		foreign: ReasonPolicyForeign, rejected: ReasonPolicyRejected, forbidden: ReasonPolicyForbidden,
		tooLarge: ReasonPolicyRejected, notServed: ReasonPolicyNotServed,
	}
)

// ensure makes the cluster have an object as a mirror says. It returns whether the cluster has it, or why it cannot;
// neither means that something is awaited.
func (p *pass) ensure(ctx context.Context, kind kindwatch.Kind, m *mirror, reasons reasonSet) (bool, *condition.Problem, error) {
	have, watched, err := p.w.see(kind, m.name())
	if problem, waiting := p.unknown(watched, reasons); problem != nil || waiting {
		return false, problem, nil
	}
	switch {
	case isUnknown(err):
		// It is known by now, which is an event.
		return false, nil, nil
	case apierrors.IsNotFound(err):
		have = nil
	case err != nil:
		return false, nil, err
	case isMastheads(have) && !p.owns(have):
		other, _ := p.cluster.Hub.Other(have)
		return false, &condition.Problem{Reason: reasons.foreign, Message: fmt.Sprintf("%s %q was put into the cluster by the hub %q. It is left alone.", kind.Kind, m.name(), other)}, nil
	case !p.owns(have):
		return false, &condition.Problem{Reason: reasons.foreign, Message: fmt.Sprintf("%s %q is in the cluster already and was not put there by Masthead. It is left alone.",
			kind.Kind, m.name())}, nil
	case have.GetDeletionTimestamp() != nil:
		// It is written again when it is gone.
		return false, nil, nil
	case p.holds(kind, m, have):
		return true, nil, nil
	}
	if p.writes >= maxWrites {
		p.within(time.Millisecond)
		return false, nil, nil
	}
	p.writes++
	return p.written(ctx, kind, m, have, reasons)
}

// holds is whether a copy is as it should be, going by its metadata.
func (p *pass) holds(kind kindwatch.Kind, m *mirror, have *unstructured.Unstructured) bool {
	return m.labelled(have, p.cluster.Hub) && m.contentAsRecorded(have) ||
		p.w.isVerified(copyKey{kind, m.name()}, verified(have, m))
}

// written writes a copy, and makes of what the cluster answers what ensure returns.
func (p *pass) written(
	ctx context.Context, kind kindwatch.Kind, m *mirror, have *unstructured.Unstructured, reasons reasonSet,
) (bool, *condition.Problem, error) {
	got, err := p.write(ctx, kind, m, have)
	switch {
	case err == nil:
		p.w.setVerified(copyKey{kind, m.name()}, verified(got, m))
		p.w.watcher.Observe(kind, types.NamespacedName{Name: m.name()}, got)
		p.wrote(kind)
		return true, nil, nil
	case apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), apierrors.IsConflict(err):
		// The watch is behind, or the definition is not served yet. Either makes an event; this is for one that was missed.
		p.within(soon)
		return false, nil, nil
	case apierrors.IsForbidden(err) && p.refusedByPolicy(kind):
		return false, nil, nil
	case apierrors.IsForbidden(err):
		return false, &condition.Problem{Reason: reasons.forbidden, Message: refusal(kind, m, err)}, nil
	case apierrors.IsInvalid(err) && have != nil && m.exactLabels && foreignFinalizer(have) == "":
		// A field that cannot be changed is different, because the hub's object was made anew. A copy can be, too.
		p.within(soon)
		return false, nil, p.remove(ctx, kind, have)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err), apierrors.IsMethodNotSupported(err):
		return false, &condition.Problem{Reason: reasons.rejected, Message: refusal(kind, m, err)}, nil
	}
	return false, nil, fmt.Errorf("cannot write %s %q in cluster %q: %w", kind.Kind, m.name(), p.w.name, err)
}

func refusal(kind kindwatch.Kind, m *mirror, err error) string {
	return fmt.Sprintf("The cluster refused %s %q: %s", kind.Kind, m.name(), multicluster.BoundedText(err.Error()))
}

// write creates or replaces a copy, and returns its metadata. The generation that it will have is written into it;
// where that was wrong, because its content was right already, it is written once more.
func (p *pass) write(ctx context.Context, kind kindwatch.Kind, m *mirror, have *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	generation := m.nextGeneration(have)
	for range 2 {
		got, err := p.put(ctx, kind, m.written(have, generation, p.cluster.Hub), have == nil)
		if err != nil || got.GetGeneration() == generation {
			return got, err
		}
		have, generation = got, got.GetGeneration()
	}
	return have, nil
}

func (p *pass) put(ctx context.Context, kind kindwatch.Kind, obj *unstructured.Unstructured, create bool) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, p.requestTimeout)
	defer cancel()
	resource := p.w.client.Resource(kind.GroupVersionResource())
	write := writeUpdate
	var got *unstructured.Unstructured
	var err error
	if create {
		write = writeCreate
		got, err = resource.Create(ctx, obj, metav1.CreateOptions{FieldManager: p.cluster.Hub.FieldManager(fleetv1alpha1.FieldManager)})
	} else {
		got, err = resource.Update(ctx, obj, metav1.UpdateOptions{FieldManager: p.cluster.Hub.FieldManager(fleetv1alpha1.FieldManager)})
	}
	if err != nil {
		return nil, err
	}
	p.reports.wrote(p.w.name, write)
	return metadataOf(got), nil
}

// remove deletes what Masthead put into the cluster, in the state in which it was seen: what was taken over by somebody
// else meanwhile stays.
func (p *pass) remove(ctx context.Context, kind kindwatch.Kind, have *unstructured.Unstructured) error {
	if have.GetDeletionTimestamp() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.requestTimeout)
	defer cancel()
	uid, version := have.GetUID(), have.GetResourceVersion()
	err := p.w.client.Resource(kind.GroupVersionResource()).Delete(ctx, have.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
	})
	switch {
	case err == nil:
		p.reports.wrote(p.w.name, writeDelete)
		p.w.forgetCopies(kind, have.GetName())
		p.wrote(kind)
		return nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		p.within(soon)
		return nil
	case apierrors.IsForbidden(err) && p.refusedByPolicy(kind):
		return nil
	}
	return fmt.Errorf("cannot delete %s %q in cluster %q: %w", kind.Kind, have.GetName(), p.w.name, err)
}
