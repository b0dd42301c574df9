// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command healthcorpus assesses a folder of objects whose expected health is specified by others, and prints how often
// Masthead agrees, as a matrix, and every object on which it does not, with both results: with its library, without it,
// and without the rules that were written for the project of the case, which shows how it judges what it does not know.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/internal/healthcases"
	"github.com/masthead-dev/masthead/pkg/health"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "healthcorpus:", err)
		os.Exit(1)
	}
}

// run assesses the cases of a folder, or, without a folder, the fixtures of Masthead's library.
func run(out io.Writer, arguments []string) error {
	flags := flag.NewFlagSet("healthcorpus", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	wantCases := flags.Int("want-cases", 0, "fail unless there are this many cases")
	mode := flags.String("mode", "", "library, without or leave-one-out; all of them by default")
	if err := flags.Parse(arguments); err != nil {
		return fmt.Errorf("cannot read the arguments: %w", err)
	}
	modes, err := selectModes(*mode)
	if err != nil {
		return err
	}
	var cases []healthcases.Case
	switch flags.NArg() {
	case 0:
		cases, err = healthcases.OfFixtures("pkg/health/library/testdata")
	case 1:
		cases, err = healthcases.Folder(flags.Arg(0))
	default:
		return errors.New("usage: healthcorpus [--want-cases=N] [--mode=MODE] [DIR]")
	}
	if err != nil {
		return err
	}
	if len(cases) == 0 {
		return errors.New("there are no cases in the folder")
	}
	if *wantCases != 0 && len(cases) != *wantCases {
		return fmt.Errorf("there are %d cases, and %d are wanted", len(cases), *wantCases)
	}
	library, err := health.NewLibrary()
	if err != nil {
		return fmt.Errorf("cannot read the library: %w", err)
	}
	results := make([]result, len(modes))
	for i, m := range modes {
		results[i] = compare(cases, m.assessors(library))
		_, _ = fmt.Fprintf(out, "%s:\n\n", m.title)
		results[i].print(out, len(cases))
	}
	for i, m := range modes {
		if len(modes) > 1 {
			_, _ = fmt.Fprintf(out, "%s, where they differ:\n\n", m.title)
		}
		for _, d := range results[i].differ {
			_, _ = fmt.Fprintf(out, "%s: theirs %s, Masthead %s (%s: %s)\n", d.name, d.want, d.got.Health, d.got.Reason, d.got.Message)
		}
		_, _ = fmt.Fprintln(out)
	}
	return nil
}

// mode is a selection of the library's rules.
type mode struct {
	name, title string

	// assessors returns what assesses an object.
	assessors func(*health.Library) func(*unstructured.Unstructured) health.Assessor
}

func selectModes(name string) ([]mode, error) {
	same := func(a health.Assessor) func(*unstructured.Unstructured) health.Assessor {
		return func(*unstructured.Unstructured) health.Assessor { return a }
	}
	all := []mode{
		{"library", "With the library", func(l *health.Library) func(*unstructured.Unstructured) health.Assessor { return same(l.New()) }},
		{"without", "Without the library", func(*health.Library) func(*unstructured.Unstructured) health.Assessor { return same(health.New()) }},
		{"leave-one-out", "Without the rules of the case's own project", leaveOneOut},
	}
	if name == "" {
		return all, nil
	}
	for _, m := range all {
		if m.name == name {
			return []mode{m}, nil
		}
	}
	return nil, fmt.Errorf("there is no mode %q: it is library, without or leave-one-out", name)
}

// leaveOneOut leaves out, for each object, the rules of the projects that have one for its kind: what Masthead reports
// about a project that its library does not know.
func leaveOneOut(library *health.Library) func(*unstructured.Unstructured) health.Assessor {
	rules := make([][]*health.Rule, len(library.Projects))
	for i, p := range library.Projects {
		for _, r := range p.Rules {
			rules[i] = append(rules[i], health.Compile(p.Name, r.HealthRuleSpec))
		}
	}
	cache := map[string]health.Assessor{}
	return func(obj *unstructured.Unstructured) health.Assessor {
		var others []*health.Rule
		left := make([]string, 0, 1)
		for i, list := range rules {
			if slices.ContainsFunc(list, func(r *health.Rule) bool { return applies(r, obj.GroupVersionKind()) }) {
				left = append(left, library.Projects[i].File)
				continue
			}
			others = append(others, list...)
		}
		key := strings.Join(left, " ")
		if cache[key] == nil {
			cache[key] = health.New(others...)
		}
		return cache[key]
	}
}

// applies reports whether a rule is for a kind, in any version.
func applies(rule *health.Rule, kind schema.GroupVersionKind) bool {
	return slices.ContainsFunc(rule.Selectors(), func(s health.Selector) bool {
		domain, below := strings.CutPrefix(s.Group, "*")
		return (s.Kind == kind.Kind || s.Kind == "*") && (s.Group == kind.Group || below && strings.HasSuffix(kind.Group, domain))
	})
}

// result is how Masthead agrees with the expectations.
type result struct {
	// matrix counts by the wanted and the computed health.
	matrix map[string]map[string]int
	differ []disagreement
}

// disagreement is an object on whose health the expectation and Masthead differ.
type disagreement struct {
	name, want string
	got        health.Result
}

// compare assesses the cases.
func compare(cases []healthcases.Case, assessors func(*unstructured.Unstructured) health.Assessor) result {
	r := result{matrix: map[string]map[string]int{}}
	for _, c := range cases {
		got := assessors(c.Object).Assess(c.Object, c.StatusExpected)
		if r.matrix[c.Want] == nil {
			r.matrix[c.Want] = map[string]int{}
		}
		r.matrix[c.Want][string(got.Health)]++
		if string(got.Health) != c.Want {
			r.differ = append(r.differ, disagreement{c.Name, c.Want, got})
		}
	}
	slices.SortFunc(r.differ, func(a, b disagreement) int {
		return cmp.Or(cmp.Compare(worst(a), worst(b)), cmp.Compare(a.name, b.name))
	})
	return r
}

// print prints the matrix.
func (r result) print(out io.Writer, cases int) {
	states := []string{"Healthy", "Suspended", "Progressing", "Unknown", "Missing", "Degraded"}
	for _, extra := range slices.Sorted(maps.Keys(r.matrix)) {
		if !slices.Contains(states, extra) {
			states = append(states, extra)
		}
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprint(table, "theirs \\ Masthead\t")
	for _, s := range states {
		_, _ = fmt.Fprint(table, s, "\t")
	}
	_, _ = fmt.Fprintln(table)
	for _, want := range states {
		_, _ = fmt.Fprint(table, want, "\t")
		for _, got := range states {
			_, _ = fmt.Fprint(table, r.matrix[want][got], "\t")
		}
		_, _ = fmt.Fprintln(table)
	}
	_ = table.Flush()
	agree, healthy := cases-len(r.differ), 0
	for _, d := range r.differ {
		healthy += 1 - worst(d)
	}
	_, _ = fmt.Fprintf(out, "\n%d of %d agree (%.1f %%); falsely Healthy: %d\n\n", agree, cases, 100*float64(agree)/float64(cases), healthy)
}

// worst sorts those disagreements first in which Masthead reports Healthy for an object that is not Healthy.
func worst(d disagreement) int {
	if d.got.Health == "Healthy" {
		return 0
	}
	return 1
}
