// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// Subject is the name of an object in a workload cluster, for use within messages to users.
type Subject string

// Definition returns the subject for a definition.
func Definition(crd string) Subject {
	return Subject(fmt.Sprintf("the CustomResourceDefinition %q", crd))
}

// Object returns the subject for an object of a kind.
func Object(kind, name string) Subject { return Subject(fmt.Sprintf("%s %q", kind, name)) }

// begins returns the subject for the beginning of a sentence.
func (s Subject) begins() string {
	first, size := utf8.DecodeRuneInString(string(s))
	return string(unicode.ToUpper(first)) + string(s)[size:]
}

// Refused returns the message that an API server rejected it, and why.
func (s Subject) Refused(err error) string {
	return fmt.Sprintf("The cluster refused %s: %s", s, multicluster.BoundedText(err.Error()))
}

// NotOurs returns the message that an object was created by another hub, or not by Masthead, and is left alone, with an
// optional consequence.
func (s Subject) NotOurs(marks Marks, owner hubidentity.Owner, consequence string) string {
	left := "It is left alone."
	if consequence != "" {
		left = "It is left alone, and " + consequence + "."
	}
	if other, is := marks.OtherHub(owner); is {
		return fmt.Sprintf("%s was created in the cluster by the hub %q. %s", s.begins(), other, left)
	}
	return fmt.Sprintf("%s already exists in the cluster and was not created by Masthead. %s", s.begins(), left)
}

// Unwatchable returns the message that Masthead lacks permission to list and watch a kind.
func Unwatchable(kind schema.GroupResource) string {
	return fmt.Sprintf("Masthead lacks the right to list and watch %s in the cluster.", kind)
}
