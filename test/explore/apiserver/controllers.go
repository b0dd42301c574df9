// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Step is one write that the garbage collector or a controller of the server is about to do.
type Step struct {
	Name string
	do   func()
}

// Pending returns what the server's own controllers can do now, in a fixed order.
func (s *Server) Pending() []Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Step
	for key, obj := range s.objects {
		if name, do := s.next(key, obj); do != nil {
			out = append(out, Step{Name: name + " " + key.String(), do: do})
		}
	}
	slices.SortFunc(out, func(a, b Step) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Run does a step that Pending has just returned.
func (s *Server) Run(step Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	step.do()
}

// next is what a controller does with an object; nil for nothing.
func (s *Server) next(key Key, obj *unstructured.Unstructured) (string, func()) {
	switch {
	case key.GroupResource == definitions && s.findKind(key.Name) == nil && obj.GetDeletionTimestamp() == nil:
		return "establish", func() { s.establish(key, obj) }
	case obj.GetDeletionTimestamp() == nil && s.isGarbage(obj):
		return "collect", func() { s.remove(key, nil) }
	case obj.GetDeletionTimestamp() == nil:
		return "", nil
	case key.GroupResource == namespaces:
		// Its controller deletes in the background, which ends what waits for dependents.
		return s.emptied(key, obj, new(metav1.DeletePropagationBackground), func(other Key) bool { return other.Namespace == key.Name })
	case key.GroupResource == definitions:
		k := s.findKind(key.Name)
		return s.emptied(key, obj, nil, func(other Key) bool { return k != nil && other.GroupResource == k.groupResource() })
	case slices.Contains(obj.GetFinalizers(), metav1.FinalizerDeleteDependents):
		if dependents := s.dependents(obj); len(dependents) > 0 {
			for _, d := range dependents {
				if s.objects[d].GetDeletionTimestamp() == nil {
					return "collect dependent of", func() { s.remove(d, nil) }
				}
			}
			return "", nil
		}
		return "release", func() { s.release(key, metav1.FinalizerDeleteDependents) }
	case slices.Contains(obj.GetFinalizers(), metav1.FinalizerOrphanDependents):
		return "orphan dependents of", func() { s.orphan(key, obj) }
	}
	return "", nil
}

// emptied deletes what is in a namespace or of a definition that is being deleted, and then releases that.
func (s *Server) emptied(key Key, obj *unstructured.Unstructured, policy *metav1.DeletionPropagation, within func(Key) bool) (string, func()) {
	content, left := false, []Key(nil)
	for other, o := range s.objects {
		if !within(other) {
			continue
		}
		content = true
		if after := s.marked(s.kinds[other.GroupResource], o, policy); !waits(after) || !equality.Semantic.DeepEqual(after, o) {
			left = append(left, other)
		}
	}
	if len(left) > 0 {
		slices.SortFunc(left, func(a, b Key) int { return cmp.Compare(a.String(), b.String()) })
		return "empty", func() {
			for _, other := range left {
				s.remove(other, policy)
			}
		}
	}
	if content {
		return "", nil
	}
	if key.GroupResource == namespaces {
		if len(obj.GetFinalizers()) > 0 {
			return "", nil
		}
		return "finalize", func() { s.store(Change{Key: key, Old: obj}) }
	}
	if !slices.Contains(obj.GetFinalizers(), apiextensionsv1.CustomResourceCleanupFinalizer) {
		return "", nil
	}
	return "finalize", func() { s.release(key, apiextensionsv1.CustomResourceCleanupFinalizer) }
}

// remove deletes an object, as a request with no other options does.
func (s *Server) remove(key Key, policy *metav1.DeletionPropagation) {
	old := s.objects[key]
	if old == nil {
		return
	}
	change := Change{Key: key, Old: old}
	if obj := s.marked(s.kinds[key.GroupResource], old, policy); waits(obj) {
		change.New = obj
	}
	s.store(change)
}

// release removes a finalizer.
func (s *Server) release(key Key, finalizer string) {
	old := s.objects[key]
	obj := old.DeepCopy()
	obj.SetFinalizers(slices.DeleteFunc(obj.GetFinalizers(), func(f string) bool { return f == finalizer }))
	change := Change{Key: key, Old: old, New: obj}
	if len(obj.GetFinalizers()) == 0 {
		change.New = nil
	}
	s.store(change)
}

func (s *Server) orphan(key Key, owner *unstructured.Unstructured) {
	for _, d := range s.dependents(owner) {
		old := s.objects[d]
		obj := old.DeepCopy()
		obj.SetOwnerReferences(slices.DeleteFunc(obj.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() }))
		s.store(Change{Key: d, Old: old, New: obj})
	}
	s.release(key, metav1.FinalizerOrphanDependents)
}

func (s *Server) dependents(owner *unstructured.Unstructured) []Key {
	var out []Key
	for key, obj := range s.objects {
		for _, r := range obj.GetOwnerReferences() {
			if r.UID == owner.GetUID() {
				out = append(out, key)
			}
		}
	}
	slices.SortFunc(out, func(a, b Key) int { return cmp.Compare(a.String(), b.String()) })
	return out
}

// isGarbage reports whether an object has owners and all of them are gone. An owner of a kind that is not served may
// exist.
func (s *Server) isGarbage(obj *unstructured.Unstructured) bool {
	refs := obj.GetOwnerReferences()
	for _, r := range refs {
		gv, err := schema.ParseGroupVersion(r.APIVersion)
		if err != nil {
			return false
		}
		k := s.byKind(schema.GroupKind{Group: gv.Group, Kind: r.Kind})
		if k == nil {
			return false
		}
		name := types.NamespacedName{Name: r.Name}
		if k.namespaced {
			name.Namespace = obj.GetNamespace()
		}
		if owner := s.objects[Key{k.groupResource(), name}]; owner != nil && owner.GetUID() == r.UID {
			return false
		}
	}
	return len(refs) > 0
}

func (s *Server) byKind(gk schema.GroupKind) *kind {
	for _, k := range s.kinds {
		if k.gvk.GroupKind() == gk {
			return k
		}
	}
	return nil
}

// findKind returns the kind of a definition, nil before it is established.
func (s *Server) findKind(definition string) *kind {
	for _, k := range s.kinds {
		if k.definition == definition {
			return k
		}
	}
	return nil
}

// establish starts to serve the kind of a definition.
func (s *Server) establish(key Key, old *unstructured.Unstructured) {
	obj := old.DeepCopy()
	k, err := newKind(obj)
	if err != nil {
		panic(fmt.Errorf("cannot serve definition %q: %w", key.Name, err))
	}
	s.kinds[k.groupResource()] = k
	names, _, _ := unstructured.NestedMap(obj.Object, "spec", "names")
	at := s.now().UTC().Format(time.RFC3339)
	condition := func(t, reason string) any {
		return map[string]any{"type": t, "status": "True", "reason": reason, "message": "", "lastTransitionTime": at}
	}
	obj.Object["status"] = map[string]any{
		"acceptedNames": names, "storedVersions": []any{k.gvk.Version},
		"conditions": []any{condition("NamesAccepted", "NoConflicts"), condition("Established", "InitialNamesAccepted")},
	}
	s.store(Change{Key: key, Old: old, New: obj})
}

// define follows the changes of a definition.
func (s *Server) define(change Change) {
	k := s.findKind(change.Key.Name)
	switch {
	case change.New == nil && k != nil:
		delete(s.kinds, k.groupResource())
		s.disconnect(k)
	case change.New != nil && change.Old == nil:
		change.New.SetFinalizers(append(change.New.GetFinalizers(), apiextensionsv1.CustomResourceCleanupFinalizer))
	case change.New != nil && k != nil:
		changed, err := newKind(change.New)
		if err != nil {
			panic(fmt.Errorf("cannot serve definition %q: %w", change.Key.Name, err))
		}
		s.kinds[changed.groupResource()] = changed
		if !equality.Semantic.DeepEqual(change.New.Object["spec"], change.Old.Object["spec"]) {
			s.disconnect(k)
		}
	}
}

// disconnect ends the watches of a kind.
func (s *Server) disconnect(k *kind) {
	s.watches = slices.DeleteFunc(s.watches, func(w *Watch) bool {
		if w.Resource != k.groupResource() {
			return false
		}
		for len(w.pending) > 0 {
			w.stream.write(w.encode(w.pending[0]))
			w.pending = w.pending[1:]
		}
		w.stream.end(io.EOF)
		return true
	})
}
