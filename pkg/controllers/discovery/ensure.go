// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// maxWrites bounds the writes of one pass.
const maxWrites = 200

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
		about := install.Object(kind.Kind, m.name())
		return condition.NewError(reasons.foreign, about.NotOurs(install.GetMarks(have), p.cluster.Hub, ""))
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
	if err := p.answered(kind, m.name(), "write", reasons.Reasons, err); err != nil {
		return err
	}
	got = reduceToMetadata(got)
	p.w.verified.Set(copyKey{kind, m.name()}, verified(got, m))
	p.w.watcher.Observe(kind, types.NamespacedName{Name: m.name()}, got)
	return nil
}

// answered returns what the cluster's answer to a write or deletion means.
func (p *pass) answered(kind kindwatch.Kind, name, do string, reasons install.Reasons, err error) error {
	switch {
	case err == nil && isPolicy(kind):
		p.w.user.Wrote(p.clock.Now())
	case apierrors.IsForbidden(err):
		if wait, refused := p.refusedByPolicy(kind); refused {
			return wait
		}
	}
	return reasons.Problem(do, install.Object(kind.Kind, name), p.w.name, err)
}

// writer writes and counts objects of a kind in the cluster.
func (p *pass) writer(kind kindwatch.Kind) install.Writer {
	return install.Writer{
		Objects: p.w.client.Resource(kind.GroupVersionResource()), Owner: p.cluster.Hub, Timeout: p.requestTimeout,
		Wrote: func(what string) { p.reports.wrote(p.w.name, what) },
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
	return p.answered(kind, have.GetName(), "delete", install.Reasons{}, err)
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
