// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/masthead-dev/masthead/pkg/guard"
)

func TestRun(t *testing.T) {
	failed := errors.New("failed")
	cases := map[string]struct {
		reason string
		fn     func() error
		value  string
		err    error
	}{
		"Nothing": {reason: "What succeeds is not touched.", fn: func() error { return nil }},
		"Error":   {reason: "An error is passed on, and is no panic.", fn: func() error { return failed }, err: failed},
		"Text":    {reason: "The value is quoted.", fn: func() error { panic("a\x1b[2Jb") }, value: `"a\x1b[2Jb"`},
		"Long":    {reason: "The value is cut.", fn: func() error { panic(strings.Repeat("x", 10_000)) }, value: `"` + strings.Repeat("x", 256) + `"`},
		"Runtime": {
			reason: "Errors of the runtime are panics like others.", value: `"assignment to entry in nil map"`,
			fn: func() error { var m map[string]int; m["a"] = 1; return nil }, //nolint:staticcheck,govet // It is meant to panic.
		},
		"Object": {reason: "Of an object only the type is reported.", fn: func() error { panic(map[string]string{"token": "s3cret"}) }, value: "map[string]string"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var reported []*guard.Panic
			err := guard.New(func(p *guard.Panic) { reported = append(reported, p) }).Run("a test", tc.fn)
			var p *guard.Panic
			switch {
			case tc.value == "":
				if !errors.Is(err, tc.err) || len(reported) != 0 {
					t.Errorf("%s Got error %v and reports %v.", tc.reason, err, reported)
				}
			case !errors.As(err, &p) || len(reported) != 1 || reported[0] != p:
				t.Errorf("%s Got error %v and reports %v.", tc.reason, err, reported)
			case p.Value != tc.value || p.Task != "a test" || !strings.Contains(string(p.Stack), "TestRun"):
				t.Errorf("%s Got %q in %q, stack:\n%s", tc.reason, p.Value, p.Task, p.Stack)
			}
			if err := (*guard.Guard)(nil).Run("a test", tc.fn); (err == nil) != (tc.value == "" && tc.err == nil) {
				t.Errorf("A nil guard recovers, too. Got error %v.", err)
			}
		})
	}
}

func TestGo(t *testing.T) {
	reported := make(chan *guard.Panic)
	guard.New(func(p *guard.Panic) { reported <- p }).Go("a test", func() { panic("of a test") })
	if p := <-reported; p.Error() != `panic in a test: "of a test"` {
		t.Errorf("The panic of a goroutine is reported. Got %q.", p)
	}
}
