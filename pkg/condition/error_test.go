// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestResult(t *testing.T) {
	boom := errors.New("boom")
	forbidden := &Error{Reason: "Forbidden", Message: "It is forbidden."}
	notServed := &Error{Reason: "NotServed", Message: "It is not served.", RetryAfter: time.Minute}
	wrapped := fmt.Errorf("cannot apply: %w", notServed)
	pending, soon := PendingError{}, PendingError{After: time.Second}
	again := reconcile.Result{RequeueAfter: time.Second}
	slowly := reconcile.Result{RequeueAfter: time.Minute}
	for name, tc := range map[string]struct {
		errs   []error
		joined error
		result reconcile.Result
		failed error
	}{
		"Nothing":         {},
		"Done":            {errs: []error{nil, nil}},
		"Failed":          {errs: []error{nil, boom}, joined: errors.Join(boom), failed: boom},
		"FailedOverAll":   {errs: []error{soon, notServed, boom}, joined: errors.Join(boom), failed: boom},
		"Problem":         {errs: []error{nil, notServed}, joined: notServed, result: slowly},
		"Wrapped":         {errs: []error{wrapped}, joined: notServed, result: slowly},
		"ForAnEvent":      {errs: []error{forbidden}, joined: forbidden},
		"ProblemAndWait":  {errs: []error{soon, notServed}, joined: &Error{Reason: "NotServed", Message: "It is not served.", RetryAfter: time.Second}, result: again},
		"Pending":         {errs: []error{pending, nil}, joined: pending},
		"PendingInAWhile": {errs: []error{pending, soon}, joined: soon, result: again},
		"Problems": {
			errs:   []error{forbidden, notServed, forbidden},
			joined: &Error{Reason: "Forbidden", Message: "It is forbidden. There are 2 more such problems.", RetryAfter: time.Minute}, result: slowly,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Join(tc.errs...)
			if _, problem := errors.AsType[*Error](tc.joined); problem {
				if diff := cmp.Diff(tc.joined, got); diff != "" {
					t.Errorf("Join -want, +got:\n%s", diff)
				}
			} else if fmt.Sprint(got) != fmt.Sprint(tc.joined) || IsPending(got) != IsPending(tc.joined) {
				t.Errorf("want %v, got %v", tc.joined, got)
			}
			result, err := Result(tc.errs...)
			if diff := cmp.Diff(tc.result, result); diff != "" || !errors.Is(err, tc.failed) {
				t.Errorf("Result, error %v -want, +got:\n%s", err, diff)
			}
		})
	}
	if notServed.RetryAfter != time.Minute || forbidden.Message != "It is forbidden." {
		t.Error("Join changes what it joins")
	}
}
