// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// fence is a block of code on a page.
type fence struct {
	// place is the page and the line.
	place, language, text string
}

// step is a command of a console block, and what the page says that it prints.
type step struct {
	place, prompt, command, prints string
}

var (
	fenceLine  = regexp.MustCompile("^( *)```([a-z]*)$")
	promptLine = regexp.MustCompile(`^([a-z0-9]*)\$ (.*)$`)
)

// fences returns the blocks of a page, without the indentation that they have in a list.
func fences(page, text string) []fence {
	var all []fence
	indent, inside := "", false
	for i, line := range strings.Split(text, "\n") {
		m := fenceLine.FindStringSubmatch(line)
		switch {
		case m != nil && !inside:
			indent, inside = m[1], true
			all = append(all, fence{place: fmt.Sprintf("%s:%d", page, i+1), language: m[2]})
		case m != nil:
			inside = false
		case inside:
			all[len(all)-1].text += strings.TrimPrefix(line, indent) + "\n"
		}
	}
	return all
}

// steps returns the commands of a console block. In a block without any prompt, each line is a command.
func steps(f fence) []step {
	var all []step
	for line := range strings.Lines(f.text) {
		line = strings.TrimSuffix(line, "\n")
		m := promptLine.FindStringSubmatch(line)
		switch {
		case m != nil:
			all = append(all, step{place: f.place, prompt: m[1], command: m[2]})
		case len(all) == 0 || all[0].prompt == noPrompt:
			all = append(all, step{place: f.place, prompt: noPrompt, command: line})
		default:
			all[len(all)-1].prints += line + "\n"
		}
	}
	return all
}

// noPrompt is the prompt of commands in a block without prompts.
const noPrompt = "none"

// withoutCode returns a page without its blocks of code, in which "#" begins a comment.
func withoutCode(text string) string {
	var out strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		border := fenceLine.MatchString(strings.TrimSuffix(line, "\n"))
		if border {
			inside = !inside
		}
		if !inside && !border {
			out.WriteString(line)
		}
	}
	return out.String()
}

// allSteps returns the commands of all pages.
func allSteps(t *testing.T) []step {
	t.Helper()
	var all []step
	for page, text := range files(t, ".md") {
		for _, f := range fences(page, text) {
			if f.language == "console" {
				all = append(all, steps(f)...)
			}
		}
	}
	if len(all) < 100 {
		t.Fatalf("found only %d commands", len(all))
	}
	return all
}
