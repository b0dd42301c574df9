// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// settings are the flags.
type settings struct {
	// apps are the numbers of Applications with which everything is measured, in order, each once. peerApps are those of
	// them with which the peer is measured.
	apps, peerApps []int

	// ballast is how many objects of the same kinds there are that belong to no Application.
	ballast int

	// periods are those of the peer, in order, the longest first.
	periods []time.Duration

	// idle is how long requests at idle are counted, and changes how many changes are followed.
	idle    time.Duration
	changes int

	// patience is the timeout until all Applications have their first status.
	patience time.Duration

	// peer is the program of the peer, or noPeer: then the peer is left out.
	peer string

	cases        bool
	managerFlags []string
	verbose      bool
}

// noPeer leaves the peer out.
const noPeer = "none"

// parse reads the command line. It returns the settings, and the file to which the tables are also written, if any.
func parse(args []string, usage io.Writer) (settings, string, error) {
	s := settings{
		apps: []int{10, 100, 1000, 5000}, peerApps: []int{100, 1000},
		periods: []time.Duration{120 * time.Second, 10 * time.Second},
	}
	f := flag.NewFlagSet("bench-application", flag.ContinueOnError)
	f.SetOutput(usage)
	list(f, &s.apps, "apps", "numbers of Applications, separated by commas", parseNumber)
	list(f, &s.peerApps, "peer-apps", "those of them with which the peer is measured, separated by commas", parseNumber)
	list(f, &s.periods, "periods", "sync periods of the peer, separated by commas", parsePeriod)
	f.IntVar(&s.ballast, "ballast", 20000, "how many objects of the same kinds belong to no Application")
	f.DurationVar(&s.idle, "idle", time.Minute, "how long requests at idle are counted, the peer's for one period at least; 0: not at all")
	f.IntVar(&s.changes, "changes", 30, "how many changes are followed into the status; 0: none")
	f.DurationVar(&s.patience, "patience", 10*time.Minute, "how long it may take until all Applications have their first status")
	f.StringVar(&s.peer, "peer", "", "program of kubernetes-sigs/application; "+noPeer+": it is left out")
	f.BoolVar(&s.cases, "cases", true, "show what each program does in the cases in which it can go wrong")
	f.Func("manager-flag", "a flag for the manager, for example --cluster-qps=100; can be repeated", func(text string) error {
		s.managerFlags = append(s.managerFlags, text)
		return nil
	})
	f.BoolVar(&s.verbose, "v", false, "list the requests of each run by verb and resource")
	output := f.String("output", "", "file to which the tables are written as well")
	if err := f.Parse(args); err != nil {
		return settings{}, "", err
	}
	slices.Reverse(s.periods)
	switch {
	case f.NArg() > 0:
		return settings{}, "", fmt.Errorf("unexpected arguments: %q", f.Args())
	case s.peer == "":
		return settings{}, "", errors.New("--peer must name the program of the peer, or be " + noPeer)
	case s.ballast < 0, s.changes < 0, s.idle < 0:
		return settings{}, "", errors.New("--ballast, --changes and --idle must not be negative")
	case s.patience <= 0:
		return settings{}, "", errors.New("--patience must be positive")
	}
	return s, *output, nil
}

// list adds a flag for a list of values, which are sorted and of which each counts once.
func list[T int | time.Duration](f *flag.FlagSet, into *[]T, name, help string, parse func(string) (T, error)) {
	words := make([]string, 0, len(*into))
	for _, v := range *into {
		words = append(words, fmt.Sprint(v))
	}
	f.Func(name, help+" (default "+strings.Join(words, ",")+")", func(text string) error {
		var values []T
		for part := range strings.SplitSeq(text, ",") {
			v, err := parse(strings.TrimSpace(part))
			if err != nil {
				return err
			}
			values = append(values, v)
		}
		slices.Sort(values)
		*into = slices.Compact(values)
		return nil
	})
	slices.Sort(*into)
}

func parseNumber(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("%q is no positive number", text)
	}
	return n, nil
}

// parsePeriod accepts whole seconds only, as the peer's flag does.
func parsePeriod(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d%time.Second != 0 {
		return 0, fmt.Errorf("%q is no number of seconds, like 120s", text)
	}
	return d, nil
}
