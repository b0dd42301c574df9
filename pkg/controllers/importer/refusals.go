// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	if len(now) == 0 {
		delete(o.known, key)
		return
	}
	if o.known == nil {
		o.known = map[types.NamespacedName]map[scope.ObjectKey]scope.Outcome{}
	}
	o.known[key] = now
}

// reflectAs writes an object as it was observed, or without what the hub refuses of it. It returns the object, or nil
// for that of a pool that is skipped. Until the next attempt is due, nothing is written that would be refused, or changed
// by others, again.
func (r *Reconciler) reflectAs(ctx context.Context, p *scope.Scope, o reflection.Object, full, there *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	hash := full.GetAnnotations()[appliedAnnotation]
	last := p.Before[scope.NewObjectKey(full)]
	if last.Full != hash {
		last = scope.Outcome{Full: hash}
	}
	if wait, waits := last.Waits(r.clock.Now()); waits && (there == nil || reflection.IsGuarded(there, full)) {
		p.Outcomes[scope.NewObjectKey(full)] = last
		p.RequeueSoon(wait)
		return r.reflectAsBefore(ctx, p, o, last, full, there)
	}
	now, err := r.write(ctx, there, full)
	switch {
	case isRefused(err):
		return r.reflectLess(ctx, p, o, last, full, there, err)
	case err != nil:
		return nil, err
	}
	changed := there != nil && there.GetAnnotations()[appliedAnnotation] == hash && !apply.Covers(there.Object, full.Object)
	r.overwritten(p, last, full, now, changed)
	return now, nil
}

// overwritten notes what others change of an object. An edit is undone at once, and the next one later.
func (r *Reconciler) overwritten(p *scope.Scope, last scope.Outcome, written, now *unstructured.Unstructured, changed bool) {
	lossy := reflection.Overwritten(written, now)
	if !now.GetDeletionTimestamp().IsZero() || len(lossy) == 0 && !changed {
		return
	}
	p.Lossy = append(p.Lossy, lossy...)
	r.conclude(p, written, last, scope.Outcome{})
}

// conclude notes the outcome of an attempt, and when the next one is due.
func (r *Reconciler) conclude(p *scope.Scope, of *unstructured.Unstructured, last, now scope.Outcome) {
	now = last.Next(now, r.clock.Now())
	p.Outcomes[scope.NewObjectKey(of)] = now
	wait, _ := now.Waits(r.clock.Now())
	p.RequeueSoon(wait)
}

// reflectAsBefore writes an object as far as the hub took it in the last attempt.
func (r *Reconciler) reflectAsBefore(
	ctx context.Context, p *scope.Scope, o reflection.Object, last scope.Outcome, full, there *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	if last.Left {
		return leave(p, o, last.Refusal, full, there)
	}
	want := full
	if last.Refusal != "" {
		reduced, lossy, err := reduce(p, last, full, there)
		if err != nil {
			return nil, err
		}
		want, p.Lossy = reduced, append(p.Lossy, lossy...)
	}
	now := there
	if there == nil || there.GetAnnotations()[appliedAnnotation] != want.GetAnnotations()[appliedAnnotation] {
		var err error
		if now, err = r.write(ctx, there, want); isRefused(err) {
			return r.reflectLess(ctx, p, o, last, full, there, err)
		} else if err != nil {
			return nil, err
		}
	}
	p.Lossy = append(p.Lossy, reflection.Overwritten(want, now)...)
	return now, nil
}

// reflectLess writes an object of which the hub refuses something: without the fields that the refusals name, or else
// with nothing but what it needs. A pool is recreated instead if the hub takes all of it then: its provider makes some
// fields immutable, and nothing depends on it. A control plane is not: Cluster API core would see that it is missing.
func (r *Reconciler) reflectLess(
	ctx context.Context, p *scope.Scope, o reflection.Object, last scope.Outcome, full, there *unstructured.Unstructured, refusal error,
) (*unstructured.Unstructured, error) {
	now := scope.Outcome{Refusal: scope.BoundedText(wordsOf(refusal))}
	if o.Role == reflection.RoleInfraPool && there != nil {
		if recreated, err := r.recreate(ctx, p, full); err != nil || recreated != nil {
			return recreated, err
		}
	}
	const most = 4 // Some webhooks say one thing at a time.
	for attempt := range most {
		more := slices.DeleteFunc(reflection.RefusedFields(full, there, wordsOf(refusal)), func(field string) bool { return slices.Contains(now.Fields, field) })
		now.Fields = append(now.Fields, more...)
		if len(more) == 0 || attempt == most-1 {
			now.Fields = nil
		}
		if o.Role == reflection.RoleIdentity {
			break // It keeps providers from acting.
		}
		want, lossy, err := reduce(p, now, full, there)
		if err != nil {
			return nil, err
		}
		written, err := r.write(ctx, there, want)
		if err == nil {
			p.Lossy = append(append(p.Lossy, lossy...), reflection.Overwritten(want, written)...)
			r.conclude(p, full, last, now)
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
	r.conclude(p, full, last, now)
	return leave(p, o, now.Refusal, full, there)
}

// leave ends with an object that the hub refuses in every form. One that is there stays as it is, as long as it keeps
// controllers from acting. A pool is skipped. Without another object the import cannot go on.
func leave(p *scope.Scope, o reflection.Object, refusal string, full, there *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	label := o.Object.GetKind() + "/" + o.Object.GetName()
	switch {
	case o.Role == reflection.RoleIdentity:
	case there != nil && reflection.IsGuarded(there, full):
		p.Lossy = append(p.Lossy, reflection.Lossy{Object: label, Field: "spec", Reason: "It is left as it is: " + refusal})
		return there, nil
	case there == nil && o.Pool != "":
		p.Skip(o, refusal)
		return nil, nil //nolint:nilnil // As documented.
	}
	return nil, scope.Stop(fleetv1alpha1.ConditionReflected, fleetv1alpha1.ReasonReflectionRefused, "The hub refuses %s %q: %s",
		o.Object.GetKind(), o.Object.GetName(), refusal)
}

func reduce(p *scope.Scope, by scope.Outcome, full, there *unstructured.Unstructured) (*unstructured.Unstructured, []reflection.Lossy, error) {
	reduced, lossy := reflection.Reduce(full, there, p.Schemas, slices.Clone(by.Fields), by.Refusal)
	stamped, err := stamped(reduced)
	return stamped, lossy, err
}

// write creates an object, or makes it match what is wanted, and returns it as it then is.
func (h *hubObjects) write(ctx context.Context, there, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if there != nil {
		return h.update(ctx, there, want)
	}
	created := want.DeepCopy()
	return created, h.create(ctx, created)
}

// recreate replaces the object of a pool, if the hub takes all of the new one: that is tried under another name. It
// returns nil if the object stays.
func (h *hubObjects) recreate(ctx context.Context, p *scope.Scope, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	probe := want.DeepCopy()
	probe.SetName(reflection.PoolName(p.Import.Name, "masthead-probe"))
	err := h.hub.Create(ctx, probe, client.DryRunAll, client.FieldOwner(fleetv1alpha1.ImportFieldManager), client.FieldValidation(metav1.FieldValidationStrict))
	if err != nil || !apply.Covers(probe.Object["spec"], want.Object["spec"]) {
		return nil, nil //nolint:nilnil,nilerr // As documented.
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(want.GroupVersionKind())
	if err := h.live.Get(ctx, client.ObjectKeyFromObject(want), live); err != nil {
		return nil, fmt.Errorf("cannot get %s %q: %w", want.GetKind(), want.GetName(), err)
	}
	if !p.IsOurs(live) {
		return nil, nameTaken(want.GetKind(), want.GetName())
	}
	if err := h.removeReflection(ctx, live); err != nil {
		if isRefused(err) {
			return nil, nil //nolint:nilnil // As documented.
		}
		return nil, err
	}
	return h.write(ctx, nil, want)
}

// isRefused reports whether validation or admission refuses an object, as opposed to a missing right or a quota. The
// code is the webhook's choice: it is 500 for one that panics.
func isRefused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	denied := slices.ContainsFunc([]string{"denied request", "denied the request"}, func(s string) bool { return strings.Contains(status.Status().Message, s) })
	return denied || apierrors.IsInvalid(err)
}

func wordsOf(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}
