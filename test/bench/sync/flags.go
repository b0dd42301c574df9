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

// parse reads the command line. It returns the settings, and the file to which the tables are also written, if any.
func parse(args []string, usage io.Writer) (settings, string, error) {
	s := settings{clusters: []int{1, 5, 20}, objects: []int{300, 1000, 5000}}
	f := flag.NewFlagSet("bench-sync", flag.ContinueOnError)
	f.SetOutput(usage)
	numbers := func(p *[]int, name, help string) {
		f.Func(name, help+" (default "+strings.Trim(fmt.Sprint(*p), "[]")+")", func(text string) (err error) {
			*p, err = parseNumbers(text)
			return err
		})
	}
	numbers(&s.clusters, "clusters", "numbers of workload clusters, separated by commas")
	numbers(&s.objects, "objects", "numbers of claims, separated by commas")
	f.StringVar(&s.konnector, "konnector", "", "kube-bind's konnector as shipped; none: it is left out")
	f.StringVar(&s.lifted, "konnector-lifted", "", "the same without limits of its clients; none: it is left out")
	f.StringVar(&s.crds, "kube-bind-crds", "", "folder of kube-bind's CRDs")
	f.IntVar(&s.turns, "turns", 1, "how often everything is measured on a fleet, in the opposite order every second time")
	f.IntVar(&s.rate, "rate", 50, "claims per second when latencies are measured")
	f.DurationVar(&s.paced, "paced", 20*time.Second, "how long latencies are measured; 0: not at all")
	f.DurationVar(&s.idle, "idle", 30*time.Second, "how long requests at idle are counted; 0: not at all")
	f.DurationVar(&s.settle, "settle", 130*time.Second, "how long a program is left alone before its memory is read once more; 0: it is not")
	f.Func("manager-flag", "a flag for the manager, for example --agent-workers=128; can be repeated", func(text string) error {
		s.managerFlags = append(s.managerFlags, text)
		return nil
	})
	f.BoolVar(&s.ceiling, "ceiling", true, "measure what the API servers can do without any program, too")
	f.BoolVar(&s.verbose, "v", false, "list the requests of each run by verb and resource")
	output := f.String("output", "", "file to which the tables are written as well")
	if err := f.Parse(args); err != nil {
		return settings{}, "", err
	}
	if f.NArg() > 0 {
		return settings{}, "", fmt.Errorf("unexpected arguments: %q", f.Args())
	}
	if (s.konnector != "" || s.lifted != "") && s.crds == "" {
		return settings{}, "", errors.New("the konnector needs kube-bind's CRDs: --kube-bind-crds")
	}
	if s.rate <= 0 || s.turns <= 0 {
		return settings{}, "", errors.New("--rate and --turns must be positive")
	}
	if s.paced > 0 && s.paced.Seconds()*float64(s.rate) < 1 {
		return settings{}, "", errors.New("not one claim is created within --paced at --rate")
	}
	return s, *output, nil
}

// parseNumbers reads positive numbers, and returns them in order, each once.
func parseNumbers(text string) ([]int, error) {
	var numbers []int
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n <= 0 {
			return nil, fmt.Errorf("%q is no positive number", part)
		}
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), nil
}
