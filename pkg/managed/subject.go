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

// OfOtherHub says that another hub put it there. It is left alone, and what follows from that may be told, too.
func (s Subject) OfOtherHub(hub hubidentity.Identity, consequence string) string {
	return fmt.Sprintf("%s was put into the cluster by the hub %q. %s", s.begins(), hub, leftAlone(consequence))
}

// OfSomebody says that Masthead did not put it there.
func (s Subject) OfSomebody(consequence string) string {
	return fmt.Sprintf("%s is in the cluster already and was not put there by Masthead. %s", s.begins(), leftAlone(consequence))
}

func leftAlone(consequence string) string {
	if consequence == "" {
		return "It is left alone."
	}
	return "It is left alone, and " + consequence + "."
}

// Unwatchable says that objects of a kind cannot be looked at for want of a right.
func Unwatchable(kind schema.GroupResource) string {
	return fmt.Sprintf("Masthead lacks the right to list and watch %s in the cluster.", kind)
}
