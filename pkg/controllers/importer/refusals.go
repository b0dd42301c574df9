// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/apply"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// outcomes are those of each import's last pass. After a restart everything is attempted once more.
type outcomes struct {
	mu    sync.Mutex
	known map[types.NamespacedName]map[objectKey]outcome
}

func (o *outcomes) get(key types.NamespacedName) map[objectKey]outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.known[key]
}

func (o *outcomes) set(key types.NamespacedName, now map[objectKey]outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == nil {
		o.known = map[types.NamespacedName]map[objectKey]outcome{}
	}
	o.known[key] = now
	if len(now) == 0 {
		delete(o.known, key)
	}
}

// outcome is what became of the last attempt to write a reflection as it was observed, unless it is there as written.
type outcome struct {
	// full is the hash of the whole object.
	full string
	// refusal has the hub's words. Empty means that it was written, and changed by others.
	refusal string
	// fields are those that the hub refuses; none means all that the object does not need.
	fields []string
	// left means that the hub refuses the object without them, too.
	left bool
	// times is how often in a row it was attempted, and until when the next attempt waits.
	times int
	until time.Time
}

// draft is a reflection that is to be written.
type draft struct {
	s    *scope
	made reflected
	role reflection.Role
	pool string
	// full is the object as it was observed, and there as it is in the hub; nil if it is not.
	full, there *unstructured.Unstructured
	last        outcome
	// res gets the lossy fields, and when the next attempt is due.
	res *result
}

// skippedError is why an object is not written, and its node pool is skipped.
type skippedError string

// Error implements error.
func (e skippedError) Error() string { return string(e) }

// writeDraft writes an object as it was observed, or without what the hub refuses of it, and returns it. Until the next
// attempt is due, nothing is written that would be refused, or changed by others, again.
func (r *Reconciler) writeDraft(ctx context.Context, d draft) (*unstructured.Unstructured, error) {
	hash, key := d.full.GetAnnotations()[appliedAnnotation], newObjectKey(d.full)
	if d.last = d.made.outcomes[key]; d.last.full != hash {
		d.last = outcome{full: hash}
	}
	if wait := d.last.until.Sub(r.clock.Now()); wait > 0 && (d.there == nil || reflection.IsGuarded(d.there, d.full)) {
		d.res.requeue(wait)
		return r.writeAsBefore(ctx, d)
	}
	delete(d.made.outcomes, key)
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
		r.conclude(d, outcome{}, lossy)
	}
	return now, nil
}

// conclude notes the outcome of an attempt, and when the next one is due.
func (r *Reconciler) conclude(d draft, now outcome, lossy []reflection.Lossy) {
	now.full, now.times = d.last.full, d.last.times+1
	wait := workload.LeftAloneFor(now.times)
	now.until = r.clock.Now().Add(wait)
	d.res.requeue(wait)
	d.made.outcomes[newObjectKey(d.full)] = now
	d.res.lossy = append(d.res.lossy, lossy...)
}

// writeAsBefore writes an object as far as the hub took it in the last attempt.
func (r *Reconciler) writeAsBefore(ctx context.Context, d draft) (*unstructured.Unstructured, error) {
	if d.last.left {
		return d.leave(d.last.refusal)
	}
	want := d.full
	if d.last.refusal != "" {
		reduced, lossy, err := d.reduced(d.last)
		if err != nil {
			return nil, err
		}
		want, d.res.lossy = reduced, append(d.res.lossy, lossy...)
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
	d.res.lossy = append(d.res.lossy, reflection.Overwritten(want, now)...)
	return now, nil
}

// writeLess writes an object of which the hub refuses something: without the fields that the refusals name, or else
// with nothing but what it needs. A pool is recreated instead if the hub takes all of it then: its provider makes some
// fields immutable, and nothing depends on it. A control plane is not: Cluster API core would see that it is missing.
func (r *Reconciler) writeLess(ctx context.Context, d draft, refusal error) (*unstructured.Unstructured, error) {
	now := outcome{refusal: boundedText(wordsOf(refusal))}
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
			func(f string) bool { return slices.Contains(now.fields, f) },
		)
		if now.fields = append(now.fields, more...); len(more) == 0 || attempt == most {
			now.fields = nil
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
		if refusal = err; now.fields == nil {
			break
		}
	}
	now.left = true
	r.conclude(d, now, nil)
	return d.leave(now.refusal)
}

// leave ends with an object that the hub refuses in every form. One that is there stays as it is, as long as it keeps
// controllers from acting. A pool is skipped. Without another object the import cannot go on.
func (d draft) leave(refusal string) (*unstructured.Unstructured, error) {
	switch {
	case d.role == reflection.RoleIdentity: // It keeps providers from acting.
	case d.there != nil && reflection.IsGuarded(d.there, d.full):
		d.res.lossy = append(d.res.lossy, reflection.Lossy{
			Object: d.full.GetKind() + "/" + d.full.GetName(), Field: "spec", Reason: "It is left as it is: " + refusal,
		})
		return d.there, nil
	case d.there == nil && d.pool != "":
		return nil, skippedError(refusal)
	}
	return nil, stop(fleetv1alpha1.ConditionReflected, fleetv1alpha1.ReasonReflectionRefused, "The hub refuses %s %q: %s",
		d.full.GetKind(), d.full.GetName(), refusal)
}

// reduced is the object without what the hub refuses.
func (d draft) reduced(by outcome) (*unstructured.Unstructured, []reflection.Lossy, error) {
	reduced, lossy := reflection.Reduce(d.full, d.there, d.made.schemas, by.fields, by.refusal)
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
	probe.SetName(reflection.PoolName(d.s.imp.Name, "masthead-probe"))
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
