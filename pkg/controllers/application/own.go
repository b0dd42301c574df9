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
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/healthcheck"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/controllers/application/workload"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// The references by which an Application owns its components are written by JSON patches that test the UID and the
// resource version of the object, as the watch showed it: what has changed since then is not touched, and of what has
// not, nothing but the reference is changed. Server-side apply would need a field manager's claim on the list, which
// others write by hand and whole, and an object of a kind that cannot be applied would be left out; a merge patch would
// replace the list. The core's controllers patch by UID only, and a strategic merge; that is not there for custom
// resources.

const (
	// maxWrites is how many references one reconcile writes at most. The rest has its turn after the others in the queue.
	maxWrites = 200

	// catchUp is when an Application is looked at again while the watch does not show yet what was written. That an object
	// has changed is no event if nothing of what is kept of it has.
	catchUp = 500 * time.Millisecond

	// liveCheckEvery is how long the API server's own word about an Application holds while objects are adopted.
	liveCheckEvery = time.Second
)

type jsonPatchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

const referencesPath = "/metadata/ownerReferences"

// unchanged are the tests that an object is still the one that the watch showed.
func unchanged(o object) []jsonPatchOperation {
	return []jsonPatchOperation{
		{Op: "test", Path: "/metadata/uid", Value: o.entry.UID},
		{Op: "test", Path: "/metadata/resourceVersion", Value: o.entry.ResourceVersion},
	}
}

// adoption is the patch that makes an object the Application's. The reference does not say that the Application is the
// controller, which there can be only one of, and does not block the deletion of the Application, for which a right is
// needed that Masthead does not have.
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

// releasing is the patch that removes the reference to an Application from an object, and nothing else.
func releasing(o object, uid types.UID) []jsonPatchOperation {
	have, _ := o.OwnedBy(uid)
	path := referencesPath + "/" + strconv.Itoa(have.Position)
	return append(unchanged(o),
		jsonPatchOperation{Op: "test", Path: path + "/uid", Value: uid},
		jsonPatchOperation{Op: "remove", Path: path},
	)
}

// own makes what belongs to the Application be owned by it, and nothing else. What one object is refused hinders no
// other.
func (p *pass) own(ctx context.Context) {
	written := 0
	within := func() bool {
		written++
		if written > maxWrites {
			p.lookAgain(workload.Coalescing)
		}
		return written <= maxWrites
	}
	for _, o := range p.selection.release {
		if p.superseded() {
			return
		}
		if p.refused(o) == nil && within() {
			p.write(ctx, o, "release", releasing(o, p.app.UID))
		}
	}
	for _, o := range p.selection.adopt {
		if p.refused(o) != nil || !within() {
			continue
		}
		if !p.mayAdopt(ctx) || p.superseded() {
			return
		}
		p.write(ctx, o, "adopt", adoption(o, p.app))
	}
}

// mayAdopt is asked before each adoption whether the Application is still there and is not being deleted: the garbage
// collector deletes an object whose owner is gone. The watch is asked each time, which costs nothing, and the API
// server itself before the first adoption and once a second: a watch can be behind.
//
// What is left is an adoption that is on its way while the Application is being deleted. It is released again as long
// as the Application is there (see selector.decide). A finalizer on the Application would close that gap, too, but
// would also keep people from deleting Applications of a cluster that is not enrolled any more.
func (p *pass) mayAdopt(ctx context.Context) bool {
	if !p.w.IsThere(p.key, p.app.UID) {
		return false
	}
	now := p.r.clock.Now()
	if !p.checkedAt.IsZero() && now.Sub(p.checkedAt) < liveCheckEvery {
		return true
	}
	uid, err := p.w.LiveUID(ctx, p.key)
	if err != nil {
		p.fail(fmt.Errorf("cannot get Application %q in cluster %q: %w", p.key, p.w.Name, err))
		return false
	}
	p.checkedAt = now
	return uid == p.app.UID
}

// write patches the owner references of an object.
func (p *pass) write(ctx context.Context, o object, verb string, patch []jsonPatchOperation) {
	err := p.patch(ctx, o, patch)
	switch {
	case err == nil:
		p.r.metrics.wrote(p.w.Name, writeOwner)
		p.t.Wrote(o.entry.UID, o.entry.ResourceVersion)
	case apierrors.IsNotFound(err):
		// It is gone, which the watch will say.
	case apierrors.IsConflict(err), isFailedTest(err):
		// The watch will show another version, and then it is tried again.
		p.t.Wrote(o.entry.UID, o.entry.ResourceVersion)
	case isRefusal(err):
		p.refuse(o, err)
	default:
		p.fail(fmt.Errorf("cannot %s %s %q in cluster %q: %w", verb, o.kind, o.entry.Key, p.w.Name, err))
	}
}

func (p *pass) patch(ctx context.Context, o object, patch []jsonPatchOperation) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("cannot make a patch: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, p.r.requestTimeout)
	defer cancel()
	_, err = p.w.Metadata.Resource(o.kind.GroupVersionResource()).Namespace(o.entry.Key.Namespace).
		Patch(ctx, o.entry.Key.Name, types.JSONPatchType, data, metav1.PatchOptions{FieldManager: p.r.fieldManagerIn(p.w)})
	return err
}

// isFailedTest recognises the answer to a patch of which a test failed. It has the code of an invalid object, but does
// not say what would be invalid about which.
func isFailedTest(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Kind == "" && len(details.Causes) == 0
}

// isRefusal recognises what is not worth trying again soon: a right that is missing, or a webhook or a policy that says
// no.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsUnsupportedMediaType(err)
}

// refuse notes that the cluster refused to have the owner references of an object written. If the right is missing,
// that goes for all objects of the kind in the namespace. What the API server says then is about one of them, so it is
// not repeated.
func (p *pass) refuse(o object, err error) {
	key, what := o.key(), workload.Describe(o.kind.GroupVersionKind)
	text := multicluster.BoundedText(fmt.Sprintf("The cluster does not let Masthead write the owner references of %s: %s", what, err))
	if healthcheck.IsMissingRight(err) {
		key.Name = ""
		text = fmt.Sprintf("Masthead lacks the right to patch %s in the namespace %q.", what, o.entry.Key.Namespace)
	}
	p.w.Refuse(key, workload.Refusal{
		Until:   p.r.clock.Now().Add(condition.SlowRetry()),
		Problem: condition.Problem{Reason: appsv1alpha1.ReasonOwnershipForbidden, Message: text},
	})
}

// refused says that the cluster does not let the owner references of an object be written, and nil if it does, or may
// again.
func (p *pass) refused(o object) *condition.Problem {
	r, ok := p.w.Refusal(o.key())
	if !ok {
		return nil
	}
	p.lookAgain(r.Until.Sub(p.r.clock.Now()) + workload.Coalescing)
	return &r.Problem
}
