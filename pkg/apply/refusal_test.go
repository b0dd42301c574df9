// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRefusal(t *testing.T) {
	internal := func(message string) error {
		return fmt.Errorf("wrapped: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: message}})
	}
	const object = "(default/a; t.example.org/v1, Kind=Thing)"
	resource := schema.GroupResource{Group: "t.example.org", Resource: "things"}
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   string
		stored bool
	}{
		"Type": {
			reason: "A value has the wrong type.",
			err:    internal("failed to create typed patch object " + object + ": .spec.size: expected string, got &value.valueUnstructured{Value:5}"),
			want:   ".spec.size: expected string, got 5",
		},
		"Types": {
			reason: "Several have.",
			err: internal("failed to create typed patch object " + object + `: errors:
  .spec.set[=1]: expected string, got &value.valueUnstructured{Value:1}
  .spec.list: duplicate entries for key [name="a"]`),
			want: `.spec.set[=1]: expected string, got 1 .spec.list: duplicate entries for key [name="a"]`,
		},
		"Stored": {
			reason: "The object's own value has.",
			err:    internal("failed to create typed live object " + object + ": .spec.size: expected string, got &value.valueUnstructured{Value:5}"),
			want:   "the stored object cannot be converted to the current schema: .spec.size: expected string, got 5", stored: true,
		},
		"StoredUnmanaged": {
			reason: "So has that of one without managedFields.",
			err: internal("failed to create manager for existing fields: failed to convert new object " + object +
				" to smd typed: .spec.size: expected numeric (int or float), got string"),
			want:   "the stored object cannot be converted to the current schema: .spec.size: expected numeric (int or float), got string",
			stored: true,
		},
		"TooLarge": {reason: "etcd does not take it.", err: internal("etcdserver: request is too large"), want: "wrapped: etcdserver: request is too large"},
		"Invalid": {
			reason: "What is answered with the right code keeps its words.", err: apierrors.NewBadRequest("no such field"), want: "no such field",
		},
		"Webhook":   {reason: "A webhook is down.", err: internal(`Internal error occurred: failed calling webhook "a": connection refused`)},
		"Forbidden": {reason: "A right can be given.", err: apierrors.NewForbidden(resource, "a", errors.New("x"))},
		"Conflict":  {reason: "The next try may pass.", err: apierrors.NewConflict(resource, "a", errors.New("x"))},
		"Network":   {reason: "There was no answer.", err: errors.New("failed to create typed patch object")},
		"None":      {reason: "There is no error."},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if refused := Refusal(tc.err); refused != nil {
				got = refused.Error()
				if !errors.Is(refused, tc.err) {
					t.Error("the answer itself is lost")
				}
			}
			if got != tc.want || isAboutStored(tc.err) != tc.stored {
				t.Errorf("%s Want %q, stored %v, got %q, stored %v.", tc.reason, tc.want, tc.stored, got, isAboutStored(tc.err))
			}
		})
	}
}
