// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestReport prints a house whose packages refer to each other in every way.
func TestReport(t *testing.T) {
	uses := func(names ...string) map[string]map[string]bool {
		out := map[string]map[string]bool{}
		for _, n := range names {
			out[n] = map[string]bool{"thing": true, "Another": true}
		}
		return out
	}
	rooms := []room{
		{path: "apis/a", files: []file{{name: "a.go", lines: 1}}, uses: map[string]int{"pkg/b": 2}},
		{
			path: "pkg/b", methods: map[string]int{"T": 3}, uses: map[string]int{"apis/a": 1},
			files: []file{{name: "x.go", uses: uses("y.go")}, {name: "y.go", uses: uses("x.go")}, {name: "z.go", uses: uses("x.go")}},
		},
		{path: "pkg/controllers/c", uses: map[string]int{"pkg/controllers/d": 4, "pkg/controllers/c/e": 1}},
		{path: "cmd/f", uses: map[string]int{"pkg/controllers/c": 1}},
	}
	if got := largestCycle(rooms[1]); !slices.Equal(got, []string{"x.go", "y.go"}) {
		t.Errorf("the largest cycle is %v", got)
	}
	var out strings.Builder
	if err := report(&out, rooms, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"apis/a -> pkg/b", "pkg/controllers/c -> pkg/controllers/d", "2 in all", "pkg/b.T"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	for _, down := range []string{"pkg/controllers/c -> pkg/controllers/c/e", "cmd/f ->"} {
		if strings.Contains(out.String(), down) {
			t.Errorf("%q does not run upward:\n%s", down, out.String())
		}
	}
}

// TestReferencesWithinCycles lists the references that form a cycle, and nothing else.
func TestReferencesWithinCycles(t *testing.T) {
	to := func(file string, names ...string) map[string]map[string]bool {
		out := map[string]map[string]bool{file: {}}
		for _, n := range names {
			out[file][n] = true
		}
		return out
	}
	rooms := []room{{path: "pkg/b", files: []file{
		{name: "a.go", uses: to("b.go", "two", "one")},
		{name: "b.go", uses: to("c.go", "three")},
		{name: "c.go", uses: to("d.go", "four")},
		{name: "d.go", uses: to("a.go", "five")},
		{name: "e.go", uses: to("a.go", "outside")},
	}}}
	for detail, want := range map[bool]int{true: 1, false: 0} {
		var out strings.Builder
		if err := report(&out, rooms, detail); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out.String(), "one two"); got != want {
			t.Errorf("detail %t: want %d times what a.go refers to in b.go:\n%s", detail, want, out.String())
		}
		if strings.Contains(out.String(), "outside") {
			t.Errorf("e.go is in no cycle:\n%s", out.String())
		}
	}
}

// TestCheck reports for each limit what exceeds it, and nothing that does not.
func TestCheck(t *testing.T) {
	files := func(n int, cycle bool) []file {
		var out []file
		for i := range n {
			next := map[string]map[string]bool{}
			if cycle {
				next[fmt.Sprintf("%d.go", (i+1)%n)] = map[string]bool{"x": true}
			}
			out = append(out, file{name: fmt.Sprintf("%d.go", i), uses: next})
		}
		return out
	}
	cases := map[string]struct {
		reason string
		room   room
		want   string
	}{
		"Within": {
			reason: "what is at the bounds is within them",
			room: room{
				path: "pkg/a", files: files(maxFiles, false), methods: map[string]int{"T": maxMethods}, uses: map[string]int{"apis/b": 1},
			},
		},
		"CycleWithin": {reason: "a small cycle can be kept in mind", room: room{path: "pkg/a", files: files(maxCycle, true)}},
		"Files":       {reason: "a package has rooms", room: room{path: "pkg/a", files: files(maxFiles+1, false)}, want: "files, more than"},
		"Cycle":       {reason: "a file can be read alone", room: room{path: "pkg/a", files: files(maxCycle+1, true)}, want: "lead to each other"},
		"Methods":     {reason: "a type is for one thing", room: room{path: "pkg/a", methods: map[string]int{"T": maxMethods + 1}}, want: "pkg/a.T has"},
		"Upward":      {reason: "a library knows no controller", room: room{path: "pkg/a", uses: map[string]int{"pkg/controllers/b": 1}}, want: "above or beside"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := check([]room{tc.room})
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s: got %v", tc.reason, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%s: want %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// TestLoad reads a package that is known to exist.
func TestLoad(t *testing.T) {
	rooms, err := load("../..", []string{"./pkg/setmap"})
	if err != nil {
		t.Fatal(err)
	}
	if len(rooms) != 1 || rooms[0].path != "pkg/setmap" || len(rooms[0].files) == 0 || rooms[0].methods["Map"] == 0 {
		t.Errorf("read %+v", rooms)
	}
}
