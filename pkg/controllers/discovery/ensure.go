// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// maxWrites bounds the writes of one pass.
const maxWrites = 200

// reasonSet are the reasons why something cannot be put into a cluster. One that is empty is an error instead.
type reasonSet struct {
	install.Reasons
	foreign, tooLarge, notServed string
}

var (
	definitionReasons = reasonSet{ //nolint:gochecknoglobals // A constant.
		Reasons: install.DefinitionReasons, foreign: fleetv1alpha1.ReasonDefinitionForeign, tooLarge: fleetv1alpha1.ReasonDefinitionRejected,
	}
	objectReasons = reasonSet{ //nolint:gochecknoglobals // A constant.
		Reasons: install.Reasons{Forbidden: fleetv1alpha1.ReasonObjectsForbidden, Rejected: fleetv1alpha1.ReasonObjectRejected},
		foreign: fleetv1alpha1.ReasonObjectForeign, tooLarge: fleetv1alpha1.ReasonObjectsTooLarge,
	}
	policyReasons = reasonSet{ //nolint:gochecknoglobals // A constant.
		Reasons: install.Reasons{Forbidden: fleetv1alpha1.ReasonPolicyForbidden, Rejected: fleetv1alpha1.ReasonPolicyRejected},
		foreign: fleetv1alpha1.ReasonPolicyForeign, tooLarge: fleetv1alpha1.ReasonPolicyRejected, notServed: fleetv1alpha1.ReasonPolicyNotServed,
	}
)

// ensure makes an object in the cluster match its mirror. Its error is why the cluster does not have it.
func (p *pass) ensure(ctx context.Context, kind kindwatch.Kind, m *mirror, reasons reasonSet) error {
	have, watched, err := p.w.see(kind, m.name())
	if err := p.known(watched, reasons); err != nil {
		return err
	}
	switch {
	case isUnknown(err):
		// An event follows when it is known.
		return condition.PendingError{}
	case apierrors.IsNotFound(err):
		have = nil
	case err != nil:
		return err
	case !p.owns(have):
		return condition.NewError(reasons.foreign, install.Object(kind.Kind, m.name()).NotOurs(install.GetMarks(have), p.cluster.Hub, ""))
	case have.GetDeletionTimestamp() != nil:
		// It is rewritten once it is gone.
		return condition.PendingError{}
	case p.holds(kind, m, have):
		return nil
	}
	if p.writes >= maxWrites {
		return condition.PendingError{After: time.Millisecond}
	}
	p.writes++
	return p.write(ctx, kind, m, have, reasons)
}

// holds reports whether a copy is up to date, judged by its metadata.
func (p *pass) holds(kind kindwatch.Kind, m *mirror, have *unstructured.Unstructured) bool {
	return m.labelled(have, p.cluster.Hub) && m.contentAsRecorded(have) ||
		p.w.verified.Is(copyKey{kind, m.name()}, verified(have, m))
}

// write writes a copy.
func (p *pass) write(ctx context.Context, kind kindwatch.Kind, m *mirror, have *unstructured.Unstructured, reasons reasonSet) error {
	got, err := p.writer(kind).Write(ctx, have, m.nextGeneration(have), m.written)
	if apierrors.IsInvalid(err) && have != nil && m.exactLabels && foreignFinalizer(have) == "" {
		// An immutable field differs, because the hub's object was recreated. A copy can be recreated, too.
		return condition.Join(p.remove(ctx, kind, have), condition.PendingError{After: condition.Soon})
	}
	if err := p.outcome(kind, m.name(), "write", reasons.Reasons, err); err != nil {
		return err
	}
	got = reduceToMetadata(got)
	p.w.verified.Set(copyKey{kind, m.name()}, verified(got, m))
	p.w.watcher.Observe(kind, types.NamespacedName{Name: m.name()}, got)
	return nil
}

// outcome returns what the cluster's answer to a write or deletion means.
func (p *pass) outcome(kind kindwatch.Kind, name, verb string, reasons install.Reasons, err error) error {
	switch {
	case err == nil && isPolicy(kind):
		p.w.user.Wrote(p.clock.Now())
	case apierrors.IsForbidden(err):
		if wait, refused := p.refusedByPolicy(kind); refused {
			return wait
		}
	}
	err = reasons.Problem(verb, install.Object(kind.Kind, name), p.w.name, err)
	if problem, ok := errors.AsType[*condition.Error](err); ok {
		problem.RetryAfter = 0 // Set for all copies of a kind together: the soonest of many would hardly be random.
	}
	return err
}

// writer writes and counts objects of a kind in the cluster.
func (p *pass) writer(kind kindwatch.Kind) install.Writer {
	return install.Writer{
		Objects: p.w.client.Resource(kind.GroupVersionResource()), Owner: p.cluster.Hub, Timeout: p.requestTimeout,
		Wrote: func(what string) { p.publish(func(m *Metrics) { m.wrote(p.w.name, what) }) },
	}
}

// remove deletes an object of Masthead's in the state in which it was observed: one that another client has taken over
// in the meantime stays.
func (p *pass) remove(ctx context.Context, kind kindwatch.Kind, have *unstructured.Unstructured) error {
	if have.GetDeletionTimestamp() != nil {
		return nil
	}
	err := p.writer(kind).Remove(ctx, p.w.client.Resource(kind.GroupVersionResource()), have)
	if err == nil {
		p.w.forgetCopies(kind, have.GetName())
	}
	return p.outcome(kind, have.GetName(), "delete", install.Reasons{}, err)
}

// definition reads the definition of a kind from the cluster. If there is none, the watch reports that.
func (p *pass) definition(ctx context.Context, k mirroredKind) (*unstructured.Unstructured, error) {
	crd, err := p.writer(ownedDefinitionKind).Get(ctx, k.crd())
	if apierrors.IsNotFound(err) {
		return nil, condition.PendingError{}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot get CustomResourceDefinition %q in cluster %q: %w", k.crd(), p.w.name, err)
	}
	return crd, nil
}

// isPolicy reports whether a kind is exempt from policies.
func isPolicy(kind kindwatch.Kind) bool { return kind == policyKind || kind == bindingKind }

// refusedByPolicy reports whether our own policy, which may still name our previous username, may have refused a
// request for an object of a kind. Then the username is requested again, or the pass waits for the corrected
// policy, and no problem is reported. Nothing else is written in this pass.
func (p *pass) refusedByPolicy(kind kindwatch.Kind) (wait condition.PendingError, refused bool) {
	now := p.clock.Now()
	switch {
	case isPolicy(kind):
		return wait, false
	case p.offer.protected && condition.IsPending(p.known(policyKind, policyReasons)):
		// Once the username is known, the policy is written, which triggers an event.
	case p.protected && !p.userRequested && !p.w.user.IsSure(now):
		p.w.user.Doubt(now)
		wait.After = condition.Soon
	case p.w.user.IsNew(now):
		wait.After = condition.Soon
	default:
		return wait, false
	}
	p.refused = true
	return wait, true
}
