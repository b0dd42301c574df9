// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command slowest prints the ten slowest tests of a run. Its arguments are files with the output of `go test -json`, or
// with a JSON report of Ginkgo. Subtests are part of their test.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

const shown = 10

// timed is a test and how long it took.
type timed struct {
	name string
	took time.Duration
}

func main() {
	var all []timed
	for _, path := range os.Args[1:] {
		data, err := os.ReadFile(path) //nolint:gosec // Whoever calls it says what it reads.
		if err == nil {
			var tests []timed
			tests, err = read(data)
			all = append(all, tests...)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "cannot read %q: %v\n", path, err)
			os.Exit(1)
		}
	}
	_, _ = os.Stdout.WriteString(report(all))
}

// read understands both formats: a report of Ginkgo is a list.
func read(data []byte) ([]timed, error) {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return specs(data)
	}
	return tests(data)
}

// tests reads the output of `go test -json`: one event per line.
func tests(data []byte) ([]timed, error) {
	var found []timed
	for line := range bytes.Lines(data) {
		var event struct {
			Action, Package, Test string
			Elapsed               float64
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("cannot decode an event: %w", err)
		}
		if event.Test == "" || strings.Contains(event.Test, "/") || event.Action != "pass" && event.Action != "fail" {
			continue
		}
		_, pkg, _ := strings.Cut(event.Package, "github.com/masthead-dev/masthead/")
		found = append(found, timed{pkg + " " + event.Test, time.Duration(event.Elapsed * float64(time.Second))})
	}
	return found, nil
}

// specs reads a report of Ginkgo.
func specs(data []byte) ([]timed, error) {
	var reports []struct {
		SpecReports []struct {
			LeafNodeType, LeafNodeText string
			ContainerHierarchyTexts    []string
			RunTime                    time.Duration
		}
	}
	if err := json.Unmarshal(data, &reports); err != nil {
		return nil, fmt.Errorf("cannot decode a report of Ginkgo: %w", err)
	}
	var found []timed
	for _, r := range reports {
		for _, s := range r.SpecReports {
			if s.LeafNodeType == "It" && s.RunTime > 0 {
				found = append(found, timed{"test/e2e " + strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText), " "), s.RunTime})
			}
		}
	}
	return found, nil
}

func report(all []timed) string {
	slices.SortStableFunc(all, func(a, b timed) int { return int(b.took - a.took) })
	var out strings.Builder
	fmt.Fprintf(&out, "the slowest of %d tests:\n", len(all))
	for _, t := range all[:min(shown, len(all))] {
		fmt.Fprintf(&out, "%8s  %s\n", t.took.Round(100*time.Millisecond), t.name)
	}
	return out.String()
}
