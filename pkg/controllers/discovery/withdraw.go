// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// listPage is the page size of lists.
const listPage = 500

// withdraw removes a kind that the cluster should not show, with the copies. The definition stays while it has objects
// that are not copies, since they would be deleted with it.
func (p *pass) withdraw(ctx context.Context, k mirroredKind) error {
	definition := crdKind(k.crd(), true)
	have, err := p.w.watcher.Get(ownedDefinitionKind, types.NamespacedName{Name: k.crd()})
	switch {
	case isUnknown(err):
		if state, _ := p.w.watcher.State(ownedDefinitionKind); state == kindwatch.StateForbidden {
			p.w.setUnmanaged(definition, true)
		}
		p.reports.forgetKind(p.w.name, k.crd())
		return nil
	case apierrors.IsNotFound(err):
		p.w.setUnmanaged(definition, true)
		p.w.forgetCopies(ownedDefinitionKind, k.crd())
		p.reports.forgetKind(p.w.name, k.crd())
		return nil
	case err != nil:
		return err
	}
	// A user may have added our label to an existing one.
	p.w.setUnmanaged(definition, false)
	if have.GetDeletionTimestamp() != nil {
		return nil
	}
	crd, err := p.definition(ctx, k)
	if err != nil {
		return err
	}
	if !p.owns(crd) {
		// The watch reports what happened to it.
		return nil
	}
	return p.withdrawDefinition(ctx, k, crd)
}

// withdrawDefinition removes a definition of Masthead's, with the copies. That of CompositeResourceDefinitions is
// removed first: a Crossplane that uses its copies uses the others, too.
func (p *pass) withdrawDefinition(ctx context.Context, k mirroredKind, crd *unstructured.Unstructured) error {
	if k.resource != resourceXRD && p.otherCrossplane.unknown {
		return nil
	}
	if k.resource != resourceXRD && p.otherCrossplane.found {
		return p.keep(ctx, k, fmt.Sprintf("The CustomResourceDefinition %q is no longer needed. It is kept, with the copies, because a Crossplane in the cluster "+
			"uses what Masthead created there.", k.crd()))
	}
	left, err := p.withdrawObjects(ctx, k, crd)
	if k.resource == resourceXRD {
		p.otherCrossplane = findings{found: left.held > 0, unknown: err != nil || !left.all}
	}
	if err != nil {
		return err
	}
	if left.foreign+left.held > 0 {
		err = p.keep(ctx, k, fmt.Sprintf("The CustomResourceDefinition %q is no longer needed. It is kept, because the cluster has %d objects of it that were not "+
			"created by Masthead, and %d that have finalizers of other clients.", k.crd(), left.foreign, left.held))
	}
	if !left.all {
		err = condition.Join(err, condition.PendingError{After: condition.Soon})
	}
	if err != nil {
		return err
	}
	p.reports.forgetKind(p.w.name, k.crd())
	return p.remove(ctx, ownedDefinitionKind, crd)
}

// keep reports why a definition that is not wanted stays.
func (p *pass) keep(ctx context.Context, k mirroredKind, why string) error {
	p.kept.Insert(k.crd())
	problem := &condition.Error{Reason: fleetv1alpha1.ReasonForeignObjectsLeft, Message: why, RetryAfter: condition.SlowRetry()}
	p.reportKind(ctx, k.crd(), 0, problem)
	return problem
}

// leftovers are the objects of a kind that remain after the copies are deleted.
type leftovers struct {
	// foreign counts objects that are not copies, and held those with a foreign finalizer, copies or not: no object is in
	// both.
	foreign, held int

	// all reports whether that is all of them.
	all bool
}

// withdrawObjects deletes the copies of a kind, and returns what is left, read from the API server: a kind that is not
// wanted may not be watched.
//
// A "not served" answer does not mean that there are no objects. One of several API servers that has not seen the
// definition's last change, which may have switched the storage version, also answers so.
func (p *pass) withdrawObjects(ctx context.Context, k mirroredKind, crd *unstructured.Unstructured) (leftovers, error) {
	left := leftovers{}
	kind, ok := servedKind(crd, k.resource)
	if !ok {
		return left, fmt.Errorf("cannot list the objects of CustomResourceDefinition %q in cluster %q: it serves no version", k.crd(), p.w.name)
	}
	more := ""
	var pending error
	for {
		page, err := p.page(ctx, kind, more)
		if apierrors.IsNotFound(err) {
			left.all = more == "" && neverServed(crd)
			return left, nil
		}
		if err != nil {
			return left, fmt.Errorf("cannot list %s in cluster %q: %w", kind, p.w.name, err)
		}
		for i := range page.Items {
			err := p.withdrawObject(ctx, kind, &page.Items[i], &left)
			if err != nil && !condition.IsPending(err) {
				return left, err
			}
			pending = condition.Join(pending, err)
		}
		if more = page.Continue; more == "" {
			left.all = true
			return left, pending
		}
	}
}

// withdrawObject deletes an object of a kind if it is a copy, or else counts it.
func (p *pass) withdrawObject(
	ctx context.Context, kind kindwatch.Kind, item *metav1.PartialObjectMetadata, left *leftovers,
) error {
	obj := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"name": item.Name, "uid": string(item.UID), "resourceVersion": item.ResourceVersion,
	}}}
	obj.SetLabels(item.Labels)
	if foreignFinalizer(item) != "" {
		left.held++
		return nil
	}
	if !p.owns(obj) {
		left.foreign++
		return nil
	}
	return p.remove(ctx, kind, obj)
}

// neverServed reports whether a definition's status says that no API server has ever served it, so that it cannot have
// objects. Established never becomes false again. Accepted names are served even before that. An empty status is not an
// answer.
func neverServed(crd *unstructured.Unstructured) bool {
	established, _ := condition.Find(crd, string(apiextensionsv1.Established))
	accepted, _ := condition.Find(crd, string(apiextensionsv1.NamesAccepted))
	return established.Status == metav1.ConditionFalse && accepted.Status == metav1.ConditionFalse
}

func (p *pass) page(ctx context.Context, kind kindwatch.Kind, more string) (*metav1.PartialObjectMetadataList, error) {
	ctx, cancel := context.WithTimeout(ctx, p.requestTimeout)
	defer cancel()
	return p.w.metadata.Resource(kind.GroupVersionResource()).List(ctx, metav1.ListOptions{Limit: listPage, Continue: more})
}
