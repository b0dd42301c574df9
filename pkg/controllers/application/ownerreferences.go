// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/apierror"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/controllers/application/workload"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// Owner references of components are written by JSON patches that test the object's UID and resource version as the
// watch showed them: changed objects are not touched, and only the reference is written. Server-side apply would claim
// the list for a field manager, although others write it by hand and whole, and would exclude kinds that cannot be
// applied. A merge patch would replace the list. Core controllers patch by UID with a strategic merge, which custom
// resources do not support.

const (
	// maxWrites bounds the references written by one reconcile. The rest is queued behind other Applications.
	maxWrites = 200

	// catchUp is the requeue delay while the watch does not show a write yet. A change outside the cached fields triggers
	// no event.
	catchUp = 500 * time.Millisecond

	// liveCheckEvery is how long a confirmation by the API server that an Application exists is valid during adoption.
	liveCheckEvery = time.Second
)

type jsonPatchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

const referencesPath = "/metadata/ownerReferences"

// unchanged are the tests that the object still is as the watch showed it.
func unchanged(o object) []jsonPatchOperation {
	return []jsonPatchOperation{
		{Op: "test", Path: "/metadata/uid", Value: o.entry.UID},
		{Op: "test", Path: "/metadata/resourceVersion", Value: o.entry.ResourceVersion},
	}
}

// adoption is the patch that makes the Application an owner of an object. The reference does not set controller, of
// which an object can have only one, nor blockOwnerDeletion, for which Masthead lacks the right.
func adoption(o object, app *appsv1alpha1.Application) []jsonPatchOperation {
	ref := map[string]any{
		"apiVersion": record.ApplicationKind.GroupVersion().String(), "kind": record.ApplicationKind.Kind, "name": app.Name, "uid": app.UID,
	}
	add := jsonPatchOperation{Op: "add", Path: referencesPath + "/-", Value: ref}
	if o.References == 0 {
		add = jsonPatchOperation{Op: "add", Path: referencesPath, Value: []any{ref}}
	}
	return append(unchanged(o), add)
}

// releasing is the patch that removes only the reference to an Application from an object.
func releasing(o object, uid types.UID) []jsonPatchOperation {
	have, _ := o.OwnedBy(uid)
	path := referencesPath + "/" + strconv.Itoa(have.Position)
	return append(unchanged(o),
		jsonPatchOperation{Op: "test", Path: path + "/uid", Value: uid},
		jsonPatchOperation{Op: "remove", Path: path},
	)
}

// own adopts the objects that belong to the Application, and releases all others. A refusal for one object does not
// affect others.
func (f findings) own(ctx context.Context) error {
	var errs []error
	written := 0
	within := func(o object) bool {
		if refused := f.refused(o); refused != nil {
			errs = append(errs, again(refused))
			return false
		}
		if written++; written > maxWrites {
			errs = append(errs, condition.PendingError{After: workload.Coalescing})
		}
		return written <= maxWrites
	}
	for _, o := range f.selection.release {
		if f.superseded() {
			return condition.Join(errs...)
		}
		if within(o) {
			errs = append(errs, f.write(ctx, o, "release", releasing(o, f.app.UID)))
		}
	}
	checkedAt := f.confirmedAt
	for _, o := range f.selection.adopt {
		if !within(o) {
			continue
		}
		exists, err := f.exists(ctx, &checkedAt)
		if err != nil || !exists || f.superseded() {
			return condition.Join(append(errs, err)...)
		}
		errs = append(errs, f.write(ctx, o, "adopt", adoption(o, f.app)))
	}
	return condition.Join(errs...)
}

// exists checks before each adoption that the Application exists and is not being deleted: the garbage collector
// deletes objects whose owner is gone. The watch, which is free, is checked each time. The API server is queried
// before the first adoption, if no status was just written, and then once a second, since a watch can be behind;
// checkedAt is when it answered last.
//
// An adoption may still be in flight while the Application is being deleted. It is released while the Application
// exists (see selector.decide). A finalizer would close that gap, but would also keep people from deleting Applications
// of a cluster that is no longer enrolled.
func (s *scope) exists(ctx context.Context, checkedAt *time.Time) (bool, error) {
	if !s.w.IsThere(s.key, s.app.UID) {
		return false, nil
	}
	now := s.r.clock.Now()
	if !checkedAt.IsZero() && now.Sub(*checkedAt) < liveCheckEvery {
		return true, nil
	}
	uid, err := s.w.LiveUID(ctx, s.key)
	if err != nil {
		return false, fmt.Errorf("cannot get Application %q in cluster %q: %w", s.key, s.w.Name, err)
	}
	*checkedAt = now
	return uid == s.app.UID, nil
}

// write patches the owner references of an object.
func (s *scope) write(ctx context.Context, o object, verb string, patch []jsonPatchOperation) error {
	err := s.patch(ctx, o, patch)
	switch {
	case err == nil:
		s.r.metrics.wrote(s.w.Name, writeOwner)
		s.tracked.Wrote(o.entry.UID, o.entry.ResourceVersion)
	case apierrors.IsNotFound(err):
		// It was deleted, which the watch will report.
	case apierrors.IsConflict(err), isFailedTest(err):
		// The watch will show another version, which triggers a retry.
		s.tracked.Wrote(o.entry.UID, o.entry.ResourceVersion)
	case isRefusal(err):
		s.refuse(o, err)
		return again(s.refused(o))
	default:
		return fmt.Errorf("cannot %s %s %q in cluster %q: %w", verb, o.kind, o.entry.Key, s.w.Name, err)
	}
	return nil
}

func (s *scope) patch(ctx context.Context, o object, patch []jsonPatchOperation) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("cannot create a patch: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.r.requestTimeout)
	defer cancel()
	_, err = s.w.Metadata.Resource(o.kind.GroupVersionResource()).Namespace(o.entry.Key.Namespace).
		Patch(ctx, o.entry.Key.Name, types.JSONPatchType, data, metav1.PatchOptions{FieldManager: s.r.fieldManagerIn(s.w)})
	return err
}

// isFailedTest recognises the response to a patch with a failed test. It has the code of an invalid object, but names
// neither the fault nor the object.
func isFailedTest(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Kind == "" && len(details.Causes) == 0
}

// isRefusal recognises errors not worth retrying soon: a missing right, or a rejection by a webhook or a policy.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsUnsupportedMediaType(err)
}

// refuse records that the cluster rejected a write of an object's owner references. A missing right applies to all
// objects of the kind in the namespace. The API server's message then concerns one of them, so it is not repeated.
func (s *scope) refuse(o object, err error) {
	key, what := o.key(), workload.Describe(o.kind.GroupVersionKind)
	text := multicluster.BoundedText(fmt.Sprintf("The cluster does not let Masthead write the owner references of %s: %s", what, err))
	if apierror.IsMissingRight(err) {
		key.Name = ""
		text = fmt.Sprintf("Masthead lacks the right to patch %s in the namespace %q.", what, o.entry.Key.Namespace)
	}
	s.w.Refuse(key, workload.Refusal{
		Until:   s.r.clock.Now().Add(condition.SlowRetry()),
		Problem: condition.Error{Reason: appsv1alpha1.ReasonOwnershipForbidden, Message: text},
	})
}

// refused returns the refusal of writes to an object's owner references, which ends at its time; nil if there is none.
func (s *scope) refused(o object) *condition.Error {
	r, ok := s.w.Refusal(o.key())
	if !ok {
		return nil
	}
	r.Problem.RetryAfter = max(r.Until.Sub(s.r.clock.Now())+workload.Coalescing, time.Millisecond)
	return &r.Problem
}
