// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestPoll(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	tests := map[string]struct {
		reason  string
		timeout time.Duration
		metAt   int
		err     error
		want    error
		least   int
		most    int
	}{
		"AtOnce":  {reason: "What holds is not waited for.", timeout: time.Minute, metAt: 1, least: 1, most: 1},
		"Soon":    {reason: "It is checked until it holds.", timeout: time.Minute, metAt: 5, least: 5, most: 5},
		"Broken":  {reason: "An error ends it.", timeout: time.Minute, err: broken, want: broken, least: 1, most: 1},
		"Timeout": {reason: "Intervals grow: at 10 ms there would be 100 checks.", timeout: time.Second, want: context.DeadlineExceeded, least: 1, most: 30},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checks := 0
			err := Poll(t.Context(), tc.timeout, func(context.Context) (bool, error) {
				checks++
				return checks == tc.metAt, tc.err
			})
			if !errors.Is(err, tc.want) || (err != nil) != (tc.want != nil) {
				t.Errorf("%s: want error %v, got %v", tc.reason, tc.want, err)
			}
			if checks < tc.least || checks > tc.most {
				t.Errorf("%s: want %d to %d checks, got %d", tc.reason, tc.least, tc.most, checks)
			}
		})
	}
}
