// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/apply"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/scope"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// outcomes are those of each import's last pass. After a restart everything is attempted once more.
type outcomes struct {
	mu    sync.Mutex
	known map[types.NamespacedName]map[scope.ObjectKey]scope.Outcome
}

func (o *outcomes) get(key types.NamespacedName) map[scope.ObjectKey]scope.Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.known[key]
}

func (o *outcomes) set(key types.NamespacedName, now map[scope.ObjectKey]scope.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == nil {
		o.known = map[types.NamespacedName]map[scope.ObjectKey]scope.Outcome{}
	}
	o.known[key] = now
	if len(now) == 0 {
		delete(o.known, key)
	}
}

// draft is a reflection that is to be written.
type draft struct {
	p    *scope.Scope
	role reflection.Role
	pool string
	// full is the object as it was observed, and there as it is in the hub; nil if it is not.
	full, there *unstructured.Unstructured
	last        scope.Outcome
}

// errSkipped is why the object of a pool that was skipped is not written.
var errSkipped = errors.New("the node pool is skipped")

// writeDraft writes an object as it was observed, or without what the hub refuses of it, and returns it. Until the next
// attempt is due, nothing is written that would be refused, or changed by others, again.
func (r *Reconciler) writeDraft(ctx context.Context, d draft) (*unstructured.Unstructured, error) {
	hash, key := d.full.GetAnnotations()[appliedAnnotation], scope.NewObjectKey(d.full)
	if d.last = d.p.Outcomes[key]; d.last.Full != hash {
		d.last = scope.Outcome{Full: hash}
	}
	if wait, waits := d.last.Waits(r.clock.Now()); waits && (d.there == nil || reflection.IsGuarded(d.there, d.full)) {
		d.p.RequeueSoon(wait)
		return r.writeAsBefore(ctx, d)
	}
	delete(d.p.Outcomes, key)
	now, err := r.write(ctx, d.there, d.full)
	switch {
	case isRefused(err):
		return r.writeLess(ctx, d, err)
	case err != nil:
		return nil, err
	}
	// An edit is undone at once, and the next one later.
	edited := d.there != nil && d.there.GetAnnotations()[appliedAnnotation] == hash && !apply.Covers(d.there.Object, d.full.Object)
	if lossy := reflection.Overwritten(d.full, now); now.GetDeletionTimestamp().IsZero() && (edited || len(lossy) > 0) {
		r.conclude(d, scope.Outcome{}, lossy)
	}
	return now, nil
}

// conclude notes the outcome of an attempt, and when the next one is due.
func (r *Reconciler) conclude(d draft, now scope.Outcome, lossy []reflection.Lossy) {
	now = d.last.Next(now, r.clock.Now())
	wait, _ := now.Waits(r.clock.Now())
	d.p.RequeueSoon(wait)
	d.p.Outcomes[scope.NewObjectKey(d.full)] = now
	d.p.Lossy = append(d.p.Lossy, lossy...)
}

// writeAsBefore writes an object as far as the hub took it in the last attempt.
func (r *Reconciler) writeAsBefore(ctx context.Context, d draft) (*unstructured.Unstructured, error) {
	if d.last.Left {
		return d.leave(d.last.Refusal)
	}
	want := d.full
	if d.last.Refusal != "" {
		reduced, lossy, err := d.reduced(d.last)
		if err != nil {
			return nil, err
		}
		want, d.p.Lossy = reduced, append(d.p.Lossy, lossy...)
	}
	now := d.there
	if now == nil || now.GetAnnotations()[appliedAnnotation] != want.GetAnnotations()[appliedAnnotation] {
		var err error
		if now, err = r.write(ctx, d.there, want); isRefused(err) {
			return r.writeLess(ctx, d, err)
		} else if err != nil {
			return nil, err
		}
	}
	d.p.Lossy = append(d.p.Lossy, reflection.Overwritten(want, now)...)
	return now, nil
}

// writeLess writes an object of which the hub refuses something: without the fields that the refusals name, or else
// with nothing but what it needs. A pool is recreated instead if the hub takes all of it then: its provider makes some
// fields immutable, and nothing depends on it. A control plane is not: Cluster API core would see that it is missing.
func (r *Reconciler) writeLess(ctx context.Context, d draft, refusal error) (*unstructured.Unstructured, error) {
	now := scope.Outcome{Refusal: scope.BoundedText(wordsOf(refusal))}
	if d.role == reflection.RoleInfraPool && d.there != nil {
		if recreates, err := r.removeForRecreation(ctx, d); err != nil {
			return nil, err
		} else if recreates {
			return r.write(ctx, nil, d.full)
		}
	}
	const most = 4 // Some webhooks say one thing at a time.
	for attempt := 1; d.role != reflection.RoleIdentity; attempt++ {
		more := slices.DeleteFunc(
			reflection.RefusedFields(d.full, d.there, wordsOf(refusal)),
			func(f string) bool { return slices.Contains(now.Fields, f) },
		)
		if now.Fields = append(now.Fields, more...); len(more) == 0 || attempt == most {
			now.Fields = nil
		}
		want, lossy, err := d.reduced(now)
		if err != nil {
			return nil, err
		}
		written, err := r.write(ctx, d.there, want)
		if err == nil {
			r.conclude(d, now, append(lossy, reflection.Overwritten(want, written)...))
			return written, nil
		}
		if !isRefused(err) {
			return nil, err
		}
		if refusal = err; now.Fields == nil {
			break
		}
	}
	now.Left = true
	r.conclude(d, now, nil)
	return d.leave(now.Refusal)
}

// leave ends with an object that the hub refuses in every form. One that is there stays as it is, as long as it keeps
// controllers from acting. A pool is skipped. Without another object the import cannot go on.
func (d draft) leave(refusal string) (*unstructured.Unstructured, error) {
	switch {
	case d.role == reflection.RoleIdentity: // It keeps providers from acting.
	case d.there != nil && reflection.IsGuarded(d.there, d.full):
		d.p.Lossy = append(d.p.Lossy, reflection.Lossy{
			Object: d.full.GetKind() + "/" + d.full.GetName(), Field: "spec", Reason: "It is left as it is: " + refusal,
		})
		return d.there, nil
	case d.there == nil && d.pool != "":
		d.p.Skip(d.pool, d.full, refusal)
		return nil, errSkipped
	}
	return nil, scope.Stop(fleetv1alpha1.ConditionReflected, fleetv1alpha1.ReasonReflectionRefused, "The hub refuses %s %q: %s",
		d.full.GetKind(), d.full.GetName(), refusal)
}

// reduced is the object without what the hub refuses.
func (d draft) reduced(by scope.Outcome) (*unstructured.Unstructured, []reflection.Lossy, error) {
	reduced, lossy := reflection.Reduce(d.full, d.there, d.p.Schemas, by.Fields, by.Refusal)
	out, err := stamped(reduced)
	return out, lossy, err
}

// write creates an object, or makes it match what is wanted, and returns it as it then is.
func (h *hubObjects) write(ctx context.Context, there, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if there != nil {
		return h.update(ctx, there, want)
	}
	created := want.DeepCopy()
	return created, h.create(ctx, created)
}

// removeForRecreation removes the object of a pool, if the hub takes all of the new one: that is tried under another
// name. It reports whether it did, or the object stays.
func (h *hubObjects) removeForRecreation(ctx context.Context, d draft) (bool, error) {
	probe := d.full.DeepCopy()
	probe.SetName(reflection.PoolName(d.p.Import.Name, "masthead-probe"))
	err := h.create(ctx, probe, client.DryRunAll)
	if err == nil {
		if !apply.Covers(probe.Object["spec"], d.full.Object["spec"]) {
			return false, nil
		}
		err = h.removeReflection(ctx, d.there.DeepCopy())
	}
	if isRefused(err) {
		return false, nil
	}
	return err == nil, err
}

// isRefused reports whether an API server or its admission refuses an object, as opposed to a missing right or a quota.
// The code is the webhook's choice: it is 500 for one that panics.
func isRefused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	denied := slices.ContainsFunc(
		[]string{"denied request", "denied the request"},
		func(s string) bool { return strings.Contains(status.Status().Message, s) },
	)
	return denied || apply.Refusal(err) != nil
}

func wordsOf(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}
