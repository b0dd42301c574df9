// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// node is a field that is wanted, and as it is in the object.
type node struct {
	path       string
	want, live any

	// ours and others are who manages it, and its members.
	ours, others managed
}

// managed says which part of a field a manager has.
type managed struct {
	itself  bool
	members *fieldpath.Set
}

func (m managed) at(e fieldpath.PathElement) managed {
	return managed{itself: m.members.Members.Has(e), members: m.members.WithPrefix(e)}
}

// onlyOurs reports whether we manage a field, or a part of it, and no other manager does.
func (n node) onlyOurs() bool {
	return (n.ours.itself || !n.ours.members.Empty()) && !n.others.itself && n.others.members.Empty()
}

// newNode returns the content of an object. Its metadata holds only text, and its status is not applied.
func newNode(want, live *unstructured.Unstructured, manager string) node {
	ours, others := &fieldpath.Set{}, &fieldpath.Set{}
	for _, e := range live.GetManagedFields() {
		fields := &fieldpath.Set{}
		if e.FieldsV1 == nil || fields.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())) != nil {
			continue
		}
		if e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "" {
			ours = ours.Union(fields)
		} else {
			others = others.Union(fields)
		}
	}
	return node{want: applied(want), live: applied(live), ours: managed{members: ours}, others: managed{members: others}}
}

func applied(obj *unstructured.Unstructured) map[string]any {
	content := maps.Clone(obj.Object)
	for _, name := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(content, name)
	}
	return content
}

// emptied returns the operations that empty what an apply would make null: the maps and lists that are wanted without
// content, and hold nothing but entries of ours. Nothing is added, so that no fields belong to the patch.
func emptied(n node) []operation {
	if n.path == "" || !loses(n.want, n.live) || n.ours.members.Empty() || !n.others.members.Empty() {
		return inMembers(n, emptied)
	}
	if kind(n.live) == list {
		return []operation{{"replace", n.path, []any{}}}
	}
	return []operation{{"replace", n.path, map[string]any{}}}
}

// retyped returns the operations that give an object values of the wanted types, so that an API server can convert it:
// an apply does the rest. What we manage and is no longer wanted goes, as it may be what is in the way. A list that
// only we manage, and an atomic map of ours, are written whole.
func retyped(n node) []operation {
	want, live := kind(n.want), kind(n.live)
	switch {
	case live == null || want == null:
		return nil
	case want != live, haveOtherElements(n.want, n.live),
		n.isWhole() && (size(n.live) != size(n.want) || !Covers(n.live, n.want)):
		return []operation{{"replace", n.path, n.want}}
	}
	ops := inMembers(n, retyped)
	wanted, _ := n.want.(map[string]any)
	has, _ := n.live.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(has)) {
		if _, ok := wanted[name]; !ok && n.field(name).onlyOurs() {
			ops = append(ops, operation{Op: "remove", Path: n.field(name).path})
		}
	}
	return ops
}

// isWhole reports whether a field of ours can be written whole. Who manages a map and none of its members has applied
// it as atomic, or empty.
func (n node) isWhole() bool {
	return n.onlyOurs() && (kind(n.want) == list || n.ours.members.Empty())
}

// haveOtherElements reports whether the elements of two lists are of different types. Then those of other managers are
// in the way, too.
func haveOtherElements(want, live any) bool {
	a, _ := want.([]any)
	b, _ := live.([]any)
	return len(a) > 0 && len(b) > 0 && kind(a[0]) != kind(b[0])
}

// inMembers collects the operations in the members that are wanted and there.
func inMembers(n node, of func(node) []operation) []operation {
	var ops []operation
	switch want := n.want.(type) {
	case map[string]any:
		live, _ := n.live.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if _, ok := live[name]; ok {
				ops = append(ops, of(n.field(name))...)
			}
		}
	case []any:
		live, _ := n.live.([]any)
		for _, element := range n.elements(want, live) {
			ops = append(ops, of(element)...)
		}
	}
	return ops
}

func (n node) field(name string) node {
	want, _ := n.want.(map[string]any)
	live, _ := n.live.(map[string]any)
	step := strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	return n.member(fieldpath.FieldNameElement(name), step, want[name], live[name])
}

// elements returns the elements of a list that are wanted and there: by their keys if some of ours have any, else by
// their places if there are as many. The latter are those of an atomic list, or of one whose owners are not known any
// more. The time is linear: lists come from workload clusters.
func (n node) elements(want, live []any) []node {
	var key value.FieldList
	for e := range n.ours.members.Children.All() {
		if e.Key != nil {
			key = *e.Key
		}
	}
	var out []node
	if key == nil && len(want) == len(live) {
		for i := range want {
			out = append(out, n.member(fieldpath.IndexElement(i), strconv.Itoa(i), want[i], live[i]))
		}
	}
	if key == nil {
		return out
	}
	at := make(map[string]int, len(live))
	for i, element := range live {
		at[keyElement(element, key).String()] = i
	}
	for _, element := range want {
		e := keyElement(element, key)
		if i, ok := at[e.String()]; ok {
			out = append(out, n.member(e, strconv.Itoa(i), element, live[i]))
		}
	}
	return out
}

// keyElement returns how managedFields name an element of a list, with the same fields as in another key of that list.
func keyElement(element any, like value.FieldList) fieldpath.PathElement {
	fields, _ := element.(map[string]any)
	key := like.Copy()
	for i := range key {
		key[i].Value = value.NewValueInterface(fields[key[i].Name])
	}
	return fieldpath.PathElement{Key: &key}
}

func (n node) member(e fieldpath.PathElement, step string, want, live any) node {
	return node{path: n.path + "/" + step, want: want, live: live, ours: n.ours.at(e), others: n.others.at(e)}
}
