// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/usermeta"
)

// AppliedHashAnnotation is set on a claim in the hub and is the hash of what Masthead applied last. The watch does not
// keep managedFields, and comparing what is wanted with what is there does not show that a field is not wanted any more;
// the hash does. It says nothing that is not in the object itself.
const AppliedHashAnnotation = "agent.masthead.dev/applied-hash"

// maxFieldManagerLength is the API server's limit.
const maxFieldManagerLength = 128

// fieldManager is the field manager of the claims of one cluster. A cluster that takes over the identifier of another takes
// over its fields, too. Identifiers are free text: what the API server would refuse is replaced, and the hash keeps apart
// what was apart.
func fieldManager(identifier string) string {
	clean := strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, identifier)
	manager := fleetv1alpha1.FieldManager + "-" + clean
	if clean == identifier && len(manager) <= maxFieldManagerLength {
		return manager
	}
	sum := sha256.Sum256([]byte(identifier))
	suffix := "-" + hex.EncodeToString(sum[:8])
	return manager[:min(len(manager), maxFieldManagerLength-len(suffix))] + suffix
}

// markedIntent returns what the hub shall hold for a claim of a workload cluster: its spec, its labels and its annotations, as
// far as they may travel and the class does not exclude them, and all annotations of Masthead. What it is called and of which kind it
// is says the place in the hub, never the claim: the claim is what a workload cluster's API server answered.
func markedIntent(claim *unstructured.Unstructured, place hubKey, marks map[string]string, f form, excluded ...string) *unstructured.Unstructured {
	intent := &unstructured.Unstructured{Object: map[string]any{}}
	intent.SetGroupVersionKind(place.kind.GroupVersionKind)
	intent.SetNamespace(place.Namespace)
	intent.SetName(place.Name)

	if labels := usermeta.Owned(claim.GetLabels(), excluded...); len(labels) > 0 {
		intent.SetLabels(labels)
	}
	annotations := usermeta.Owned(claim.GetAnnotations(), excluded...)
	maps.Copy(annotations, marks)
	intent.SetAnnotations(annotations)

	if spec, ok := usersSpec(claim, f); ok {
		intent.Object["spec"] = f.pushable(spec)
	}

	annotations[AppliedHashAnnotation] = hashOf(intent.Object)
	intent.SetAnnotations(annotations)
	return intent
}

// intent is what the hub shall hold for the claim, given what it holds now, which may be nothing.
func (s *scope) intent(ctx context.Context, place hubKey, hub *unstructured.Unstructured) *unstructured.Unstructured {
	var excluded []string
	if s.class != nil {
		excluded = s.class.Spec.Agent.ExcludedMetadata
	}
	return markedIntent(s.claim, place, s.marks(ctx, hub), s.form, excluded...)
}

// marks are the annotations that Masthead sets on the claim's object in the hub: which source it comes from, where that is, and
// with whose rights it was created. Who takes an object over from another cluster, or adopts it, counts as its creator.
func (s *scope) marks(ctx context.Context, hub *unstructured.Unstructured) map[string]string {
	marks := s.us.annotations()
	maps.Copy(marks, s.home.annotations())
	creator := ""
	if hub != nil && residenceOf(hub).cluster == s.home.cluster {
		creator = hub.GetAnnotations()[fleetv1alpha1.CreatedByAnnotation]
	}
	if access, err := accessOf(ctx); creator == "" && err == nil {
		creator = access.key.mark()
	}
	if creator != "" {
		marks[fleetv1alpha1.CreatedByAnnotation] = creator
	}
	return marks
}

// hashOf is a hash of JSON content. Go writes the keys of maps in order.
func hashOf(content map[string]any) string {
	data, err := json.Marshal(content)
	if err != nil {
		// Content comes from JSON. What cannot go back is different from everything else.
		return fmt.Sprintf("unknown: %v", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// applied is whether an object of the hub already is what the intent says, so that nothing needs to be written: it was
// applied with this intent, and every field of the intent still has its value.
func applied(intent, hub *unstructured.Unstructured, f form) bool {
	if hub.GetAnnotations()[AppliedHashAnnotation] != intent.GetAnnotations()[AppliedHashAnnotation] {
		return false
	}
	want := map[string]any{"labels": toAny(intent.GetLabels()), "annotations": toAny(intent.GetAnnotations())}
	have := map[string]any{"labels": toAny(hub.GetLabels()), "annotations": toAny(hub.GetAnnotations())}
	if spec, ok := intent.Object["spec"].(map[string]any); ok {
		want["spec"] = f.users(spec)
		have["spec"] = hub.Object["spec"]
	}
	return covers(have, want)
}

func toAny(in map[string]string) map[string]any {
	out := make(map[string]any, len(in))
	for k, v := range in {
		out[k] = v
	}
	return out
}

// covers is whether everything that is wanted is there with the same value. Fields that are not mentioned may have any
// value. Lists must have the same length and cover each other element by element: that allows for fields that were filled
// in late inside of an element. A null that is wanted is covered by a missing field, since the API server drops it.
func covers(have, want any) bool {
	switch w := want.(type) {
	case nil:
		return have == nil
	case map[string]any:
		return coversMap(have, w)
	case []any:
		return coversList(have, w)
	case int64:
		f, ok := have.(float64)
		return have == want || ok && f == float64(w)
	case float64:
		i, ok := have.(int64)
		return have == want || ok && w == float64(i)
	}
	return have == want
}

func coversMap(have any, want map[string]any) bool {
	h, ok := have.(map[string]any)
	if !ok {
		return len(want) == 0 && have == nil
	}
	for k, v := range want {
		if !covers(h[k], v) {
			return false
		}
	}
	return true
}

func coversList(have any, want []any) bool {
	h, ok := have.([]any)
	if !ok {
		return len(want) == 0 && have == nil
	}
	if len(h) != len(want) {
		return false
	}
	for i := range want {
		if !covers(h[i], want[i]) {
			return false
		}
	}
	return true
}

// forCreation makes an intent one that the API server accepts only if there is no object of that name. In server-side
// apply a resource version of 0 passes for an object that is to be created, and is refused for one that exists, without a
// window between looking and writing. An ordinary create would do, too, but what it writes belongs to the manager's
// "Update" fields, and a later apply would not remove them.
func forCreation(intent *unstructured.Unstructured) *unstructured.Unstructured {
	out := intent.DeepCopy()
	out.SetResourceVersion("0")
	return out
}

// forUpdate makes an intent one that the API server accepts only for the very object that was looked at, in the state in which it
// was: neither another one of the same name nor one that names another source meanwhile.
func forUpdate(intent, hub *unstructured.Unstructured) *unstructured.Unstructured {
	out := intent.DeepCopy()
	out.SetUID(hub.GetUID())
	out.SetResourceVersion(hub.GetResourceVersion())
	return out
}

// connectionSecretName is the name of the connection Secret that a claim asks for, or empty.
func connectionSecretName(claim *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(claim.Object, "spec", "writeConnectionSecretToRef", "name")
	return name
}

// secretTypeConnection is the type of Crossplane's connection Secrets.
const secretTypeConnection corev1.SecretType = "connection.crossplane.io/v1alpha1"

// controlledBy is whether an object's controller is the object with a UID.
func controlledBy(obj metav1.Object, owner metav1.Object) bool {
	c := metav1.GetControllerOfNoCopy(obj)
	return c != nil && owner.GetUID() != "" && c.UID == owner.GetUID()
}
