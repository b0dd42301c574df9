// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// root is the command before it runs, with the commands that cobra adds to it at run time.
func root() *cobra.Command {
	cmd := newRoot(Options{Streams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}})
	cmd.InitDefaultHelpCmd()
	cmd.InitDefaultCompletionCmd()
	return cmd
}

// parses returns what is wrong with a command line, if anything.
func parses(arguments []string) error {
	cmd, rest, err := root().Find(arguments)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if cmd.Runnable() {
		return cmd.ValidateArgs(cmd.Flags().Args())
	}
	return nil
}

// The pages about the commands.
const (
	reference = "cli.md"
	walk      = "walk.md"
)

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// commandLines are the calls of the plugin in a text of shell lines.
func commandLines(text string) [][]string {
	var out [][]string
	for line := range strings.SplitSeq(text, "\n") {
		_, call, ok := strings.Cut(line, "kubectl masthead ")
		if !ok {
			continue
		}
		call, _, _ = strings.Cut(call, " | ")
		if arguments := strings.Fields(call); arguments[0] != "--help" {
			out = append(out, arguments)
		}
	}
	return out
}

// typed are the calls of the plugin in the console blocks of a page.
func typed(t *testing.T, name string) [][]string {
	t.Helper()
	var lines [][]string
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(page(t, name), -1) {
		for _, line := range regexp.MustCompile(`(?m)^[a-z0-9]*\$ .*$`).FindAllString(block[1], -1) {
			lines = append(lines, commandLines(line)...)
		}
	}
	return lines
}

func TestWhatPagesTypeIsUnderstood(t *testing.T) {
	for _, name := range []string{reference, walk} {
		lines := typed(t, name)
		if len(lines) < 8 {
			t.Fatalf("want the commands of docs/%s, got %v", name, lines)
		}
		for _, line := range lines {
			if err := parses(line); err != nil {
				t.Errorf("docs/%s types %q: %v", name, strings.Join(line, " "), err)
			}
		}
	}
}

// TestWalkHasEveryCommand checks that docs/walk.md, whose commands a test of test/printed runs, has every command,
// including those that cobra adds.
func TestWalkHasEveryCommand(t *testing.T) {
	walked := map[string]bool{}
	for _, line := range typed(t, walk) {
		cmd, _, err := root().Find(line)
		if err != nil {
			t.Fatal(err)
		}
		walked[cmd.CommandPath()] = true
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, below := range cmd.Commands() {
			visit(below)
			if !below.HasSubCommands() && !walked[below.CommandPath()] {
				t.Errorf("docs/walk.md does not run %q", below.CommandPath())
			}
		}
	}
	visit(root())
}

func TestEveryCommandIsOnThePageAndHasExamples(t *testing.T) {
	text := page(t, reference)
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, below := range cmd.Commands() {
			if below.Hidden || below.Name() == "help" || below.Name() == "completion" {
				continue
			}
			visit(below)
			if below.HasSubCommands() {
				continue
			}
			name := strings.TrimPrefix(below.CommandPath(), root().CommandPath()+" ")
			heading := regexp.MustCompile(`(?m)^## (.* and )?` + regexp.QuoteMeta(name) + `( and .*)?$`)
			if !heading.MatchString(text) {
				t.Errorf("docs/cli.md has no section %q", name)
			}
			examples := commandLines(below.Example)
			if len(examples) == 0 {
				t.Errorf("%s has no examples", name)
			}
			for _, line := range examples {
				if err := parses(line); err != nil {
					t.Errorf("the help of %s types %q: %v", name, strings.Join(line, " "), err)
				}
			}
		}
	}
	visit(root())
}
