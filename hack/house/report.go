// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Limits of what is printed.
const (
	largestTypes = 12
	smallCycle   = 3
)

// report prints the picture of a house.
func report(out io.Writer, rooms []room, detail bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }

	line("PACKAGE\tFILES\tLINES\tREFERENCES BETWEEN FILES\tLARGEST CYCLE OF FILES")
	for _, r := range rooms {
		lines, between := 0, 0
		for _, f := range r.files {
			lines += f.lines
			between += len(f.uses)
		}
		line("%s\t%d\t%d\t%d\t%d", r.path, len(r.files), lines, between, len(largestCycle(r)))
	}

	line("\nREFERENCES THAT RUN UPWARD")
	upward := 0
	for _, r := range rooms {
		for _, to := range slices.Sorted(maps.Keys(r.uses)) {
			if isUpward(r.path, to) {
				upward++
				line("%s -> %s\t%d", r.path, to, r.uses[to])
			}
		}
	}
	line("%d in all", upward)

	line("\nCYCLES OF MORE THAN %d FILES", smallCycle)
	for _, r := range rooms {
		if cycle := largestCycle(r); len(cycle) > smallCycle {
			line("%s\t%s", r.path, strings.Join(cycle, " "))
		}
	}

	if detail {
		line("\nREFERENCES WITHIN THESE CYCLES")
		for _, r := range rooms {
			if cycle := largestCycle(r); len(cycle) > smallCycle {
				within(r, cycle, line)
			}
		}
	}

	line("\nTYPES WITH THE MOST METHODS")
	for _, t := range mostMethods(rooms) {
		line("%s\t%d", t.name, t.methods)
	}
	if detail {
		line("\nREFERENCES BETWEEN PACKAGES")
		for _, r := range rooms {
			for _, to := range slices.Sorted(maps.Keys(r.uses)) {
				line("%s -> %s\t%d", r.path, to, r.uses[to])
			}
		}
	}
	return w.Flush()
}

// Floors of the house, from the ground up. The packages of a floor refer to those below it.
const (
	floorAPIs = iota
	floorLibraries
	floorControllers
	floorCommands
)

func floorOf(path string) int {
	switch {
	case strings.HasPrefix(path, "apis/"):
		return floorAPIs
	case strings.HasPrefix(path, "pkg/controllers/"):
		return floorControllers
	case strings.HasPrefix(path, "cmd/"):
		return floorCommands
	}
	return floorLibraries
}

// isUpward is whether a reference between two packages is upward, or from one controller to another one.
func isUpward(from, to string) bool {
	if floorOf(from) == floorControllers && floorOf(to) == floorControllers {
		return controllerOf(from) != controllerOf(to)
	}
	return floorOf(to) > floorOf(from)
}

// controllerOf is the name of the controller that a package is a part of.
func controllerOf(path string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(path, "pkg/controllers/"), "/")
	return name
}

// largestCycle returns the largest set of files of a package in which each file reaches every other one by references.
func largestCycle(r room) []string {
	reach := map[string]map[string]bool{}
	for _, f := range r.files {
		reach[f.name] = reachable(r, f.name)
	}
	var largest []string
	for _, f := range r.files {
		var cycle []string
		for _, g := range r.files {
			if reach[f.name][g.name] && reach[g.name][f.name] {
				cycle = append(cycle, g.name)
			}
		}
		if len(cycle) > len(largest) {
			largest = cycle
		}
	}
	return largest
}

// within prints what the files of a cycle refer to in one another: what would have to move for the cycle to end.
func within(r room, cycle []string, line func(string, ...any)) {
	for _, f := range r.files {
		if !slices.Contains(cycle, f.name) {
			continue
		}
		for _, to := range slices.Sorted(maps.Keys(f.uses)) {
			if slices.Contains(cycle, to) {
				line("%s: %s -> %s\t%s", r.path, f.name, to, strings.Join(slices.Sorted(maps.Keys(f.uses[to])), " "))
			}
		}
	}
}

// reachable are the files that a file of a package reaches by references.
func reachable(r room, from string) map[string]bool {
	uses := map[string]map[string]map[string]bool{}
	for _, f := range r.files {
		uses[f.name] = f.uses
	}
	seen, next := map[string]bool{}, slices.Collect(maps.Keys(uses[from]))
	for len(next) > 0 {
		name := next[len(next)-1]
		next = next[:len(next)-1]
		if !seen[name] {
			seen[name] = true
			next = slices.AppendSeq(next, maps.Keys(uses[name]))
		}
	}
	return seen
}

type typeSize struct {
	name    string
	methods int
}

// mostMethods are the types with the most methods.
func mostMethods(rooms []room) []typeSize {
	var all []typeSize
	for _, r := range rooms {
		for name, n := range r.methods {
			all = append(all, typeSize{r.path + "." + name, n})
		}
	}
	slices.SortFunc(all, func(a, b typeSize) int { return cmp.Or(cmp.Compare(b.methods, a.methods), cmp.Compare(a.name, b.name)) })
	return all[:min(len(all), largestTypes)]
}
