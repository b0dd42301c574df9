// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"net/http"
	"regexp"
	"strings"

	"github.com/masthead-dev/masthead/pkg/apierror"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// API servers answer with code 500 to an apply that does not match the schema, and to what etcd does not take.
var (
	unmergeable = regexp.MustCompile( //nolint:gochecknoglobals // A constant.
		`(?s)^failed to create (typed patch object|typed live object|manager for existing fields)\b` +
			`.*?\)(?: to smd typed)?: (?:errors:)?(.*)`)
	goValue = regexp.MustCompile(`&value\.valueUnstructured\{Value:(.*?)\}`) //nolint:gochecknoglobals // A constant.
)

const tooLarge = "etcdserver: request is too large"

// Refusal returns an API server's words about content that it does not take, or nil for any other answer: for the same
// content, it would answer the same again. Admission and missing rights are not about content alone.
func Refusal(err error) error {
	switch match := unmergeable.FindStringSubmatch(internalMessage(err)); {
	case match != nil:
		words := strings.Join(strings.Fields(goValue.ReplaceAllString(match[2], "$1")), " ")
		if match[1] != "typed patch object" {
			words = "the stored object cannot be converted to the current schema: " + words
		}
		return refusalError{err, words}
	case apierror.IsRejected(err), internalMessage(err) == tooLarge:
		return err
	}
	return nil
}

// isAboutStored reports whether an API server could not apply because of the object as it is stored.
func isAboutStored(err error) bool {
	match := unmergeable.FindStringSubmatch(internalMessage(err))
	return match != nil && match[1] != "typed patch object"
}

// internalMessage returns the message of an answer with code 500.
func internalMessage(err error) string {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || answer.Status().Code != http.StatusInternalServerError {
		return ""
	}
	return answer.Status().Message
}

// refusalError is an answer in fewer words.
type refusalError struct {
	error

	words string
}

func (e refusalError) Error() string { return e.words }

func (e refusalError) Unwrap() error { return e.error }
