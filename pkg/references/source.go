// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// A Source is a referenced object.
type Source struct {
	schema.GroupVersionKind
	types.NamespacedName

	// Resource is the API's name of the kind.
	Resource string
}

// GroupResource returns the resource without a version: an object is the same in each.
func (s Source) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: s.Group, Resource: s.Resource}
}

// String describes a source for users.
func (s Source) String() string {
	return describe(s.GroupResource(), s.NamespacedName)
}

func describe(gr schema.GroupResource, name types.NamespacedName) string {
	switch {
	case name.Name == "" && name.Namespace == "":
		return gr.String()
	case name.Name == "":
		return fmt.Sprintf("%s in the namespace %q", gr, name.Namespace)
	case name.Namespace == "":
		return fmt.Sprintf("%s %q", gr, name.Name)
	}
	return fmt.Sprintf("%s %q in the namespace %q", gr, name.Name, name.Namespace)
}
