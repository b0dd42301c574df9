// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package propagation

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
)

// Crossplane fills in fields of the hub's object late: the composite resource, composition and composition revision of
// a claim. They are shown in the claim's spec, as users next to Crossplane see them, by server-side apply under their
// own field manager and without force. That manager is the only record of what was filled in:
//
//   - a field that only it manages is a copy of the hub's, which follows the hub and is never pushed back as user
//     intent;
//   - a field that anybody else manages, even with the same value, is the user's. It is not touched, and is pushed.
//
// Server-side apply distinguishes the two at the time of the write, regardless of the tool, and stores that in the
// object itself, across restarts of the manager. A record in an annotation was rejected: it can only compare values,
// and is lost when a user replaces the object.

// LateOwned returns which spec fields of a claim we filled in, in the form of managedFields. Fields that another hub
// filled in are not the user's either.
func LateOwned(claim *unstructured.Unstructured) map[string]any {
	var owned map[string]any
	for _, fields := range LateEntries(claim) {
		owned = union(owned, fields)
	}
	return owned
}

// LateEntries returns which spec fields of a claim, if any, each of our late-init field managers owns.
func LateEntries(claim *unstructured.Unstructured) map[string]map[string]any {
	managed, _, _ := unstructured.NestedFieldNoCopy(claim.Object, "metadata", "managedFields")
	entries, _ := managed.([]any)
	out := map[string]map[string]any{}
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		manager, _ := entry["manager"].(string)
		ours := manager == fleetv1alpha1.LateInitFieldManager || strings.HasPrefix(manager, fleetv1alpha1.LateInitFieldManager+"-")
		if !ours || entry["operation"] != string(metav1.ManagedFieldsOperationApply) {
			continue
		}
		fields, _ := entry["fieldsV1"].(map[string]any)
		out[manager], _ = fields["f:spec"].(map[string]any)
	}
	return out
}

// union returns the fields of both, in the form of managedFields. A field without members covers all of it.
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

// FormerManagers returns the earlier late-init field managers that still own fields of a claim.
func FormerManagers(claim *unstructured.Unstructured, owner hubidentity.Owner) []string {
	entries := LateEntries(claim)
	return slices.DeleteFunc(owner.FormerFieldManagers(fleetv1alpha1.LateInitFieldManager), func(m string) bool { _, there := entries[m]; return !there })
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

// ownsAll reports whether fields cover a value completely. Fields without members cover any value.
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

// OwnedPart returns the part of a value that fields cover; nil if there is none.
func OwnedPart(fields map[string]any, value any) any {
	object, ok := value.(map[string]any)
	if len(fields) == 0 || !ok {
		return value
	}
	out := map[string]any{}
	for name, v := range object {
		if member, ok := fields["f:"+name].(map[string]any); ok {
			out[name] = OwnedPart(member, v)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// UsersSpec returns the user intent in the spec of a claim: all but late-initialized fields that only we manage. If a
// user changed part of such a field, the whole field is user intent.
func UsersSpec(claim *unstructured.Unstructured, f crossplane.Form) (map[string]any, bool) {
	spec, ok := claim.Object["spec"].(map[string]any)
	if !ok {
		return nil, false
	}
	spec = runtime.DeepCopyJSON(spec)
	owned := LateOwned(claim)
	for _, path := range f.LateFields(spec) {
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

// LateSpec returns the spec fields of a claim that we should manage, and whether that is a change: all that Crossplane
// has filled in and the user has not, except the fields in notOurs. If a user changed part of a field, the part that we
// still own stays as it is.
func LateSpec(claim, hub *unstructured.Unstructured, f crossplane.Form, notOurs ...string) (spec map[string]any, changes bool) {
	have, _ := claim.Object["spec"].(map[string]any)
	want, _ := hub.Object["spec"].(map[string]any)
	owned := LateOwned(claim)
	spec = map[string]any{}
	for _, path := range f.LateFields(have, want) {
		fields, ours := ownedAt(owned, path)
		has, there, _ := unstructured.NestedFieldNoCopy(have, path...)
		wants, filled, _ := unstructured.NestedFieldNoCopy(want, path...)
		filled = filled && wants != nil
		switch {
		case slices.Contains(notOurs, strings.Join(path, ".")):
			changes = changes || ours
		case there && !ours:
		case there && !ownsAll(fields, has):
			if part := OwnedPart(fields, has); part != nil {
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

// setField sets a field, on a copy. A value in its way came from a workload cluster, and stays.
func setField(spec map[string]any, value any, path []string) {
	_ = unstructured.SetNestedField(spec, runtime.DeepCopyJSONValue(value), path...)
}

// AwaitsLateFields returns how much longer the first late-initialized fields should wait for the others, or zero.
// Crossplane fills them in one by one until the object is ready; each would be one more write.
func AwaitsLateFields(hub *unstructured.Unstructured, now time.Time, patience time.Duration) time.Duration {
	if condition.IsTrue(hub, "Ready") {
		return 0
	}
	left := hub.GetCreationTimestamp().Add(patience).Sub(now)
	return min(max(left, 0), patience)
}

// ConflictingFields returns the LateFields that an API server refused us because somebody else manages them.
func ConflictingFields(err error, late [][]string) []string {
	var out []string
	causes := conflictCauses(err)
	for _, path := range late {
		field := strings.Join(path, ".")
		if slices.ContainsFunc(causes, func(c metav1.StatusCause) bool {
			// A managed field may be a member of the field, the field, or a parent.
			of, is := c.Field+".", ".spec."+field+"."
			return strings.HasPrefix(of, is) || strings.HasPrefix(is, of)
		}) {
			out = append(out, field)
		}
	}
	return out
}

// conflictCauses returns the fields that an API server refused us because somebody else manages them.
func conflictCauses(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !apierrors.IsConflict(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(status.Status().Details.Causes), func(c metav1.StatusCause) bool {
		return c.Type != metav1.CauseTypeFieldManagerConflict || c.Field == ""
	})
}
