// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command healthcorpus assesses a folder of objects whose expected health is specified by others, and prints how often
// Masthead agrees, as a matrix, and every object on which it does not, with both results.
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
	"text/tabwriter"

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
	if err := flags.Parse(arguments); err != nil {
		return fmt.Errorf("cannot read the arguments: %w", err)
	}
	library, err := health.NewLibrary()
	if err != nil {
		return fmt.Errorf("cannot read the library: %w", err)
	}
	var cases []healthcases.Case
	switch flags.NArg() {
	case 0:
		cases, err = healthcases.OfFixtures("pkg/health/library/testdata")
	case 1:
		cases, err = healthcases.Folder(flags.Arg(0))
	default:
		return errors.New("usage: healthcorpus [--want-cases=N] [DIR]")
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
	report(out, cases, library.New())
	return nil
}

// disagreement is an object on whose health the expectation and Masthead differ.
type disagreement struct {
	name, want string
	got        health.Result
}

// report prints the results of the cases.
func report(out io.Writer, cases []healthcases.Case, assessor health.Assessor) {
	matrix := map[string]map[string]int{}
	agree := 0
	var differ []disagreement
	for _, c := range cases {
		got := assessor.Assess(c.Object, c.StatusExpected)
		row := matrix[c.Want]
		if row == nil {
			row = map[string]int{}
			matrix[c.Want] = row
		}
		row[string(got.Health)]++
		if string(got.Health) == c.Want {
			agree++
		} else {
			differ = append(differ, disagreement{c.Name, c.Want, got})
		}
	}
	states := []string{"Healthy", "Suspended", "Progressing", "Unknown", "Missing", "Degraded"}
	for _, extra := range slices.Sorted(maps.Keys(matrix)) {
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
			_, _ = fmt.Fprint(table, matrix[want][got], "\t")
		}
		_, _ = fmt.Fprintln(table)
	}
	_ = table.Flush()
	_, _ = fmt.Fprintf(out, "\n%d of %d agree (%.1f %%)\n\n", agree, len(cases), 100*float64(agree)/float64(len(cases)))
	slices.SortFunc(differ, func(a, b disagreement) int {
		return cmp.Or(cmp.Compare(worst(a), worst(b)), cmp.Compare(a.name, b.name))
	})
	for _, d := range differ {
		_, _ = fmt.Fprintf(out, "%s: theirs %s, Masthead %s (%s: %s)\n", d.name, d.want, d.got.Health, d.got.Reason, d.got.Message)
	}
}

// worst sorts those disagreements first in which Masthead reports Healthy for an object that is not Healthy.
func worst(d disagreement) int {
	if d.got.Health == "Healthy" {
		return 0
	}
	return 1
}
