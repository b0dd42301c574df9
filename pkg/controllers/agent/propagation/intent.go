// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package propagation

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/pkg/apply"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/objects"
	"github.com/masthead-dev/masthead/pkg/usermeta"
)

// Intent returns the desired object in the hub for a claim of a workload cluster: its spec, labels and annotations, as
// far as they may be pushed and the class does not exclude them, and all annotations of Masthead. Name and kind come
// from the place in the hub, never from the claim: a workload cluster's API server can answer with anything as the
// claim.
func Intent(claim *unstructured.Unstructured, place ownership.Place, marks map[string]string, f crossplane.Form, excluded ...string) *unstructured.Unstructured {
	intent := &unstructured.Unstructured{Object: map[string]any{}}
	intent.SetGroupVersionKind(place.Kind.GroupVersionKind)
	intent.SetNamespace(place.Namespace)
	intent.SetName(place.Name)

	if labels := usermeta.Owned(claim.GetLabels(), excluded...); len(labels) > 0 {
		intent.SetLabels(labels)
	}
	annotations := usermeta.Owned(claim.GetAnnotations(), excluded...)
	maps.Copy(annotations, marks)
	intent.SetAnnotations(annotations)

	if spec, ok := UsersSpec(claim, f); ok {
		intent.Object["spec"] = f.Pushable(spec)
	}

	annotations[ownership.AppliedHashAnnotation] = objects.Digest(intent.Object)
	intent.SetAnnotations(annotations)
	return intent
}

// Applied reports whether an object of the hub already matches the intent, so that no write is needed: this intent was
// applied last, and all its fields still have their values.
func Applied(intent, hub *unstructured.Unstructured, f crossplane.Form) bool {
	return hub.GetAnnotations()[ownership.AppliedHashAnnotation] == intent.GetAnnotations()[ownership.AppliedHashAnnotation] &&
		Altered(intent, hub, f) == ""
}

// Altered returns the first field of the intent that has another value in an object of the hub, or none if all have
// theirs.
func Altered(intent, hub *unstructured.Unstructured, f crossplane.Form) string {
	want := map[string]any{"labels": toAny(intent.GetLabels()), "annotations": toAny(intent.GetAnnotations())}
	have := map[string]any{"labels": toAny(hub.GetLabels()), "annotations": toAny(hub.GetAnnotations())}
	if spec, ok := intent.Object["spec"].(map[string]any); ok {
		want["spec"] = f.Users(spec)
		if spec, ok := hub.Object["spec"]; ok {
			have["spec"] = spec
		}
	}
	path, _ := apply.Difference(have, want)
	return strings.TrimPrefix(path, ".")
}

func toAny(in map[string]string) map[string]any {
	out := make(map[string]any, len(in))
	for k, v := range in {
		out[k] = v
	}
	return out
}

// ForCreation makes the API server accept an intent only if no object of that name exists. In server-side apply,
// resource version 0 passes for a new object and is refused for an existing one, without a race between reading and
// writing. A plain create would work, too, but its fields belong to the manager's "Update" entry, and a later apply
// would not remove them.
func ForCreation(intent *unstructured.Unstructured) *unstructured.Unstructured {
	out := intent.DeepCopy()
	out.SetResourceVersion("0")
	return out
}

// ForUpdate makes the API server accept an intent only for the very object that was read, in that state: not for
// another one of the same name, nor for one that names another source meanwhile.
func ForUpdate(intent, hub *unstructured.Unstructured) *unstructured.Unstructured {
	out := intent.DeepCopy()
	out.SetUID(hub.GetUID())
	out.SetResourceVersion(hub.GetResourceVersion())
	return out
}
