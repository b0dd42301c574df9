// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
)

// Crossplane fills in fields of the hub's object late: which composite resource, which composition and which revision of it a
// claim got. They are shown in the claim's spec, so that the user sees what he would see next to Crossplane, by server-side
// apply under a field manager of its own and without force. That manager is the whole memory of what was filled in:
//
//   - what only it manages is a copy of the hub's, which follows the hub and never travels back as if the user had wished it;
//   - what anybody else manages, even with the same value, is the user's. It is not touched, and travels.
//
// Server-side apply tells the two apart at the moment of the write, whoever wrote with which tool, and remembers it in the
// object itself, over a restart of the manager. A record in an annotation was rejected: it can only compare values, and is lost
// when a user replaces the object.

// lateInitManager is the field manager of what was filled in late; a hub adds "-" and its identity. The watch of a workload cluster
// keeps what these manage.
const lateInitManager = "masthead-late-init"

// lateFields are the fields of a requirement's spec that are shown when they are filled in late: Crossplane's machinery. In a
// composite that is each field of spec.crossplane that one of the specs has.
func (f form) lateFields(specs ...map[string]any) [][]string {
	var fields [][]string
	if f != formComposite {
		for _, field := range append([]string{"compositionSelector"}, crossplanesOwn...) {
			fields = append(fields, []string{field})
		}
		return fields
	}
	names := map[string]bool{}
	for _, spec := range specs {
		machinery, _ := spec[crossplaneField].(map[string]any)
		for field := range machinery {
			names[field] = true
		}
	}
	for _, field := range slices.Sorted(maps.Keys(names)) {
		fields = append(fields, []string{crossplaneField, field})
	}
	return fields
}

// lateOwned returns which fields of its spec a claim has from us, in the form of managedFields. What another hub filled in is
// no more the user's than what this one did.
func lateOwned(claim *unstructured.Unstructured) map[string]any {
	var owned map[string]any
	for _, fields := range lateEntries(claim) {
		owned = union(owned, fields)
	}
	return owned
}

// lateEntries returns which fields of its spec, if any, a claim has from each field manager of what was filled in late.
func lateEntries(claim *unstructured.Unstructured) map[string]map[string]any {
	managed, _, _ := unstructured.NestedFieldNoCopy(claim.Object, "metadata", "managedFields")
	entries, _ := managed.([]any)
	out := map[string]map[string]any{}
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		manager, _ := entry["manager"].(string)
		ours := manager == lateInitManager || strings.HasPrefix(manager, lateInitManager+"-")
		if !ours || entry["operation"] != string(metav1.ManagedFieldsOperationApply) {
			continue
		}
		fields, _ := entry["fieldsV1"].(map[string]any)
		out[manager], _ = fields["f:spec"].(map[string]any)
	}
	return out
}

// union returns the fields of both, in the form of managedFields. A field without members is all of it.
func union(a, b map[string]any) map[string]any {
	if a == nil {
		return b
	}
	out := maps.Clone(a)
	for name, fields := range b {
		have, known := out[name].(map[string]any)
		more, _ := fields.(map[string]any)
		switch {
		case !known:
			out[name] = fields
		case len(have) > 0 && len(more) > 0:
			out[name] = union(have, more)
		default:
			out[name] = map[string]any{}
		}
	}
	return out
}

// formerManagers are the field managers, under which what a claim was filled in with was written before, that manage fields of it
// still.
func formerManagers(claim *unstructured.Unstructured, owner hubidentity.Owner) []string {
	entries := lateEntries(claim)
	return slices.DeleteFunc(owner.FormerFieldManagers(lateInitManager), func(m string) bool { _, there := entries[m]; return !there })
}

// ownedAt returns the fields below a path, and whether there are any.
func ownedAt(fields map[string]any, path []string) (map[string]any, bool) {
	for _, step := range path {
		next, ok := fields["f:"+step].(map[string]any)
		if !ok {
			return nil, false
		}
		fields = next
	}
	return fields, true
}

// ownsAll is whether fields cover a value completely. Fields without members cover whatever is there.
func ownsAll(fields map[string]any, value any) bool {
	if len(fields) == 0 {
		return true
	}
	object, ok := value.(map[string]any)
	if !ok {
		return false
	}
	for name, v := range object {
		member, ok := fields["f:"+name].(map[string]any)
		if !ok || !ownsAll(member, v) {
			return false
		}
	}
	return true
}

// ownedPart is what fields cover of a value; nil if that is nothing.
func ownedPart(fields map[string]any, value any) any {
	object, ok := value.(map[string]any)
	if len(fields) == 0 || !ok {
		return value
	}
	out := map[string]any{}
	for name, v := range object {
		if member, ok := fields["f:"+name].(map[string]any); ok {
			out[name] = ownedPart(member, v)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// usersSpec is what a user says in the spec of a claim: all of it, without what was filled in late and is still only ours.
// Where he has changed a part of what was filled in, all of that is what he says.
func usersSpec(claim *unstructured.Unstructured, f form) (map[string]any, bool) {
	spec, ok := claim.Object["spec"].(map[string]any)
	if !ok {
		return nil, false
	}
	spec = runtime.DeepCopyJSON(spec)
	owned := lateOwned(claim)
	for _, path := range f.lateFields(spec) {
		fields, ours := ownedAt(owned, path)
		value, there, _ := unstructured.NestedFieldNoCopy(spec, path...)
		if !ours || !there || !ownsAll(fields, value) {
			continue
		}
		unstructured.RemoveNestedField(spec, path...)
		if parent, _ := spec[path[0]].(map[string]any); len(path) > 1 && len(parent) == 0 {
			delete(spec, path[0])
		}
	}
	return spec, true
}

// lateSpec is what we shall manage in the spec of a claim, and whether that changes anything: everything that Crossplane has
// filled in and the user has not, except for the fields in notOurs. A part that is left to us of what a user has changed stays
// as it is.
func lateSpec(claim, hub *unstructured.Unstructured, f form, notOurs ...string) (spec map[string]any, changes bool) {
	have, _ := claim.Object["spec"].(map[string]any)
	want, _ := hub.Object["spec"].(map[string]any)
	owned := lateOwned(claim)
	spec = map[string]any{}
	for _, path := range f.lateFields(have, want) {
		fields, ours := ownedAt(owned, path)
		has, there, _ := unstructured.NestedFieldNoCopy(have, path...)
		wants, filled, _ := unstructured.NestedFieldNoCopy(want, path...)
		filled = filled && wants != nil
		switch {
		case slices.Contains(notOurs, strings.Join(path, ".")):
			changes = changes || ours
		case there && !ours:
		case there && !ownsAll(fields, has):
			if part := ownedPart(fields, has); part != nil {
				setField(spec, part, path)
			}
		default:
			changes = changes || there != filled || !equality.Semantic.DeepEqual(has, wants)
			if filled {
				setField(spec, wants, path)
			}
		}
	}
	return spec, changes
}

// setField sets a field, by a copy. What is in the way is what a workload cluster answered, and stays.
func setField(spec map[string]any, value any, path []string) {
	_ = unstructured.SetNestedField(spec, runtime.DeepCopyJSONValue(value), path...)
}

// awaitsLateFields is how much longer the first fields that were filled in should wait for the others, or zero. Crossplane
// fills them in one after the other until the object is ready; each would be one more write.
func awaitsLateFields(hub *unstructured.Unstructured, now time.Time, patience time.Duration) time.Duration {
	if conditionTrue(hub, "Ready") {
		return 0
	}
	left := hub.GetCreationTimestamp().Add(patience).Sub(now)
	return min(max(left, 0), patience)
}

// lateInitialise shows in the claim what Crossplane has filled in, and has the claim record its object in the hub.
func (r *requirementReconciler) lateInitialise(ctx context.Context, s *scope, hub *unstructured.Unstructured) (*problem, time.Duration, error) {
	if err := r.inheritLate(ctx, s); err != nil {
		return nil, 0, err
	}
	spec, changes := lateSpec(s.claim, hub, s.form)
	recorded := s.claim.GetAnnotations()[fleetv1alpha1.HubObjectAnnotation] == recordFor(s.claim, hub)
	if !changes && recorded {
		return nil, 0, nil
	}
	// A record of another object is corrected at once; it would be followed.
	if _, outdated := recordOf(s.claim); recorded || !outdated {
		if left := awaitsLateFields(hub, r.clock.Now(), r.patience); left > 0 {
			return nil, left, nil
		}
	}
	if r.shownInVain(s, spec, hub) {
		return nil, 0, nil
	}
	again := time.Duration(0)
	manager, record := s.workload.owner().FieldManager(lateInitManager), recordFor(s.claim, hub)
	claim, err := r.applyLate(ctx, s, manager, record, spec)
	if conflictsWithRecord(err) {
		// The record came with the manifest of another claim, or somebody has changed it.
		if err = r.correctRecord(ctx, s, hub); err == nil {
			claim, err = r.applyLate(ctx, s, manager, record, spec)
		}
	}
	if fields := conflictingFields(err, s.form.lateFields(spec)); len(fields) > 0 {
		// The user says the same as we did, so that it was taken for ours; it is his. What is his has to travel, and the watch
		// does not have the claim looked at again because of what we have written ourselves.
		spec, _ = lateSpec(s.claim, hub, s.form, fields...)
		claim, err = r.applyLate(ctx, s, manager, record, spec)
		again = lookAgain
	}
	if err != nil {
		if p := workloadProblem(err, "show the fields that Crossplane filled in", ReasonWorkloadRejected); p != nil {
			return p, slowRetry(), nil
		}
		return nil, 0, fmt.Errorf("cannot show in %s what Crossplane filled in: %w", s.Request, err)
	}
	r.metrics.wrote(s.ClusterName, writeLateFields)
	s.workload.watcher.Observe(s.Kind, claim)
	s.claim = claim
	r.rememberShown(s, spec, hub)
	return nil, again, nil
}

// inheritLate makes what former field managers of ours have filled in this hub's: it applies the same, and then has them give it up.
func (r *requirementReconciler) inheritLate(ctx context.Context, s *scope) error {
	former := formerManagers(s.claim, s.workload.owner())
	if len(former) == 0 {
		return nil
	}
	var spec map[string]any
	if owned := lateOwned(s.claim); len(owned) > 0 {
		have, _ := s.claim.Object["spec"].(map[string]any)
		spec, _ = ownedPart(owned, have).(map[string]any)
	}
	manager, record := s.workload.owner().FieldManager(lateInitManager), s.claim.GetAnnotations()[fleetv1alpha1.HubObjectAnnotation]
	claim, err := r.applyLate(ctx, s, manager, record, spec)
	if conflictsWithRecord(err) {
		// It is somebody else's, and is corrected afterwards.
		claim, err = r.applyLate(ctx, s, manager, "", spec)
	}
	for _, manager := range former {
		if err == nil {
			claim, err = r.applyLate(ctx, s, manager, "", nil)
		}
	}
	if err != nil {
		// What a user has changed meanwhile is an event.
		return fmt.Errorf("cannot take over in %s what was filled in before: %w", s.Request, err)
	}
	r.metrics.wrote(s.ClusterName, writeLateFields)
	s.workload.watcher.Observe(s.Kind, claim)
	s.claim = claim
	return nil
}

// lookAgain is when a claim is looked at again of which this reconcile has found out that it says more than was pushed.
const lookAgain = time.Millisecond

// correctRecord makes the record of a claim that of an object of the hub, whoever wrote it.
func (r *requirementReconciler) correctRecord(ctx context.Context, s *scope, hub *unstructured.Unstructured) error {
	claim := s.claim.DeepCopy()
	annotations := claim.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[fleetv1alpha1.HubObjectAnnotation] = recordFor(claim, hub)
	claim.SetAnnotations(annotations)
	return r.patchClaim(ctx, s, claim, writeAnnotation)
}

// applyLate applies what we manage of the very claim that was looked at, which is what was filled in late and the record of its
// object in the hub. A claim that is gone is not made anew. Both are one apply, because nearly every claim needs both and
// each request counts. An empty record is none.
func (r *requirementReconciler) applyLate(
	ctx context.Context, s *scope, manager, record string, spec map[string]any,
) (*unstructured.Unstructured, error) {
	claim := &unstructured.Unstructured{Object: map[string]any{}}
	claim.SetGroupVersionKind(s.Kind.GroupVersionKind)
	claim.SetNamespace(s.Namespace)
	claim.SetName(s.Name)
	claim.SetUID(s.claim.GetUID())
	if record != "" {
		claim.SetAnnotations(map[string]string{fleetv1alpha1.HubObjectAnnotation: record})
	}
	if len(spec) > 0 {
		claim.Object["spec"] = runtime.DeepCopyJSON(spec)
	}
	err := s.workload.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(claim), client.FieldOwner(manager))
	if err != nil {
		return nil, err
	}
	if claim.GetUID() != s.claim.GetUID() || claim.GetNamespace() != s.Namespace || claim.GetName() != s.Name {
		return nil, fmt.Errorf("cluster %q answered with another object than %s", s.ClusterName, s.NamespacedName)
	}
	return claim, nil
}

// conflictingFields are those of lateFields that an API server refused to give us because somebody else manages them.
func conflictingFields(err error, late [][]string) []string {
	var out []string
	causes := conflictCauses(err)
	for _, path := range late {
		field := strings.Join(path, ".")
		if slices.ContainsFunc(causes, func(c metav1.StatusCause) bool {
			// What is managed may be a member of the field, the field, or what the field is in.
			of, is := c.Field+".", ".spec."+field+"."
			return strings.HasPrefix(of, is) || strings.HasPrefix(is, of)
		}) {
			out = append(out, field)
		}
	}
	return out
}

// conflictCauses are the fields that an API server refused to give us because somebody else manages them.
func conflictCauses(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !apierrors.IsConflict(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(status.Status().Details.Causes), func(c metav1.StatusCause) bool {
		return c.Type != metav1.CauseTypeFieldManagerConflict || c.Field == ""
	})
}

// rememberShown remembers an apply that did not lead to what was applied, because the workload cluster drops or changes it. It
// is not repeated as long as it would be the same.
func (r *requirementReconciler) rememberShown(s *scope, spec map[string]any, hub *unstructured.Unstructured) {
	_, still := lateSpec(s.claim, hub, s.form)
	recorded := s.claim.GetAnnotations()[fleetv1alpha1.HubObjectAnnotation] == recordFor(s.claim, hub)
	r.ledger.edit(s.Request, func(e *entry) {
		e.shown = ""
		if still || !recorded {
			e.shown = recordFor(s.claim, hub) + hashOf(spec)
		}
	})
}

func (r *requirementReconciler) shownInVain(s *scope, spec map[string]any, hub *unstructured.Unstructured) bool {
	return r.ledger.of(s.Request).shown == recordFor(s.claim, hub)+hashOf(spec)
}
