// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command hostile measures what hostile API servers cost the honest clusters that are enrolled beside them, and the
// manager: claims are carried at a steady rate without them, with them, and without them again, in one run of
// bin/manager. test/bench/README.md describes how. It prints tables in Markdown.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/masthead-dev/masthead/internal/test/hostile"
	"github.com/masthead-dev/masthead/test/bench/report"
)

// settings are the flags.
type settings struct {
	attacks     []hostile.Attack
	honest      int
	rounds      int
	hub         int
	rate        int
	paced       time.Duration
	lead        time.Duration
	patience    time.Duration
	memoryLimit string
	pprof       string
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == serveCommand {
		// The process that started it ends it, not the signal that both receive.
		signal.Ignore(os.Interrupt)
		if err := serve(context.Background(), os.Args[2:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "bench-hostile:", err)
			os.Exit(1)
		}
		return
	}
	report.Main("bench-hostile", func(args []string, usage io.Writer) (report.Measure, string, error) {
		s, output, err := parse(args, usage)
		return func(ctx context.Context) (string, error) {
			if s.hub > 0 {
				return hubRun(ctx, s, func() string { return report.Machine(context.WithoutCancel(ctx)) })
			}
			r, err := run(ctx, s)
			return render(r, s, report.Machine(context.WithoutCancel(ctx))), err
		}, output, err
	})
}

// worst are the attacks that are enrolled by default: those that used the most resources before there were guards, and
// at least one of every kind.
const worst = "endless-list,empty-elements,endless-array,endless-pages,empty-pages,deep-nesting,enormous-keys,enormous-managed-fields," +
	"endless-events,repeated-events,endless-bookmarks,endless-event,event-of-elements,endless-streams,changing-objects,drip,gzip-bomb," +
	"redirects-lists,protobuf-elements,endless-discovery,huge-headers,never-answers,silent,malformed"

// parse reads the command line. It returns the settings, and the file to which the tables are also written, if any.
func parse(args []string, usage io.Writer) (settings, string, error) {
	s := settings{}
	f := flag.NewFlagSet("bench-hostile", flag.ContinueOnError)
	f.SetOutput(usage)
	attacks := f.String("attacks", worst, "names of attacks, separated by commas; all: every one")
	f.IntVar(&s.honest, "honest", 2, "number of honest clusters, which are real ones")
	f.IntVar(&s.rounds, "rounds", 2, "how often it is measured without and with hostile clusters")
	f.IntVar(&s.hub, "hub", 0, "measure what so many large objects cost that claims leave in the hub, and as many that are created there, instead of hostile clusters")
	f.IntVar(&s.rate, "rate", 10, "claims per second")
	f.DurationVar(&s.paced, "paced", 30*time.Second, "how long claims are created each time")
	f.DurationVar(&s.lead, "lead", 10*time.Second, "how long claims are created before a phase is measured, so that it does not begin at rest")
	f.DurationVar(&s.patience, "patience", 6*time.Minute, "how long to wait for a condition that says what is wrong with each hostile cluster")
	f.StringVar(&s.memoryLimit, "gomemlimit", "921MiB", "GOMEMLIMIT of the manager; the default is what it takes in the container of config/manager")
	f.StringVar(&s.pprof, "pprof-bind-address", "", "loopback address at which the manager serves its profiles")
	output := f.String("output", "", "file to which the tables are written as well")
	if err := f.Parse(args); err != nil {
		return settings{}, "", err
	}
	if f.NArg() > 0 {
		return settings{}, "", fmt.Errorf("unexpected arguments: %q", f.Args())
	}
	if s.honest <= 0 || s.rounds <= 0 || s.rate <= 0 || s.paced <= 0 || s.lead <= 0 || s.patience <= 0 || s.hub < 0 {
		return settings{}, "", errors.New("--honest, --rounds, --rate, --paced, --lead and --patience must be positive, and --hub not negative")
	}
	if *attacks == "all" {
		s.attacks = hostile.Attacks()
		return s, *output, nil
	}
	names := strings.Split(*attacks, ",")
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		a, ok := hostile.Named(name)
		if !ok {
			return settings{}, "", fmt.Errorf("there is no attack %q", name)
		}
		s.attacks = append(s.attacks, a)
	}
	return s, *output, nil
}
