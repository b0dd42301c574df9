// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// Subject is an object in a workload cluster as sentences for users name it, within a sentence.
type Subject string

// Definition is the subject of sentences about a definition.
func Definition(crd string) Subject {
	return Subject(fmt.Sprintf("the CustomResourceDefinition %q", crd))
}

// Object is the subject of sentences about an object of a kind.
func Object(kind, name string) Subject { return Subject(fmt.Sprintf("%s %q", kind, name)) }

// begins is the subject at the beginning of a sentence.
func (s Subject) begins() string {
	first, size := utf8.DecodeRuneInString(string(s))
	return string(unicode.ToUpper(first)) + string(s)[size:]
}

// Refused says that an API server did not take it, and why.
func (s Subject) Refused(err error) string {
	return fmt.Sprintf("The cluster refused %s: %s", s, multicluster.BoundedText(err.Error()))
}

// NotOurs says of one that is not this hub's who put it there: another hub, or somebody who is no Masthead. It is left
// alone, and what follows from that may be told, too.
func (s Subject) NotOurs(marks Marks, owner hubidentity.Owner, consequence string) string {
	left := "It is left alone."
	if consequence != "" {
		left = "It is left alone, and " + consequence + "."
	}
	if other, is := marks.OtherHub(owner); is {
		return fmt.Sprintf("%s was put into the cluster by the hub %q. %s", s.begins(), other, left)
	}
	return fmt.Sprintf("%s is in the cluster already and was not put there by Masthead. %s", s.begins(), left)
}

// Unwatchable says that objects of a kind cannot be looked at for want of a right.
func Unwatchable(kind schema.GroupResource) string {
	return fmt.Sprintf("Masthead lacks the right to list and watch %s in the cluster.", kind)
}
