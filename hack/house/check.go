// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The limits of what a reader can keep in mind. Anything larger is divided: a package into rooms; a cycle by moving
// what both ends need below them; a type by moving what a step needs into its own type.
const (
	maxFiles   = 30
	maxCycle   = 7
	maxMethods = 55
)

// check returns what exceeds the limits, one per line; nil if nothing does.
func check(rooms []room) error {
	var out []error
	for _, r := range rooms {
		for _, to := range slices.Sorted(maps.Keys(r.uses)) {
			if isUpward(r.path, to) {
				out = append(out, fmt.Errorf("%s refers to %s, which is above or beside it", r.path, to))
			}
		}
		if len(r.files) > maxFiles {
			out = append(out, fmt.Errorf("%s has %d files, more than %d", r.path, len(r.files), maxFiles))
		}
		if cycle := largestCycle(r); len(cycle) > maxCycle {
			out = append(out, fmt.Errorf("%s has %d files that lead to each other, more than %d: %s (-references says by what)",
				r.path, len(cycle), maxCycle, strings.Join(cycle, " ")))
		}
		for _, name := range slices.Sorted(maps.Keys(r.methods)) {
			if n := r.methods[name]; n > maxMethods {
				out = append(out, fmt.Errorf("%s.%s has %d methods, more than %d", r.path, name, n, maxMethods))
			}
		}
	}
	return errors.Join(out...)
}
