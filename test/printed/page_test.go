// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package printed

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// block is a console block of a page.
type block struct {
	// section is the heading above it.
	section string
	place   string
	steps   []step
}

// step is a command, and what the page says that it prints.
type step struct {
	// where names the cluster whose administrator runs it; empty for none in particular.
	where, command string
	prints         []string
}

var prompt = regexp.MustCompile(`^([a-z0-9]*)\$ (.*)$`)

// blocks returns the console blocks of a page. In a block without any prompt, each line is a command.
func blocks(t *testing.T, page string) []block {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testenv.Root(), filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	var all []block
	var lines []string
	section, inside := "", false
	for i, line := range strings.Split(string(data), "\n") {
		switch {
		case line == "```console":
			inside, lines = true, nil
			all = append(all, block{section: section, place: fmt.Sprintf("%s:%d", page, i+2)})
		case line == "```" && inside:
			inside = false
			all[len(all)-1].steps = steps(lines)
		case inside:
			lines = append(lines, line)
		case strings.HasPrefix(line, "#"):
			section = strings.TrimSpace(strings.TrimLeft(line, "#"))
		}
	}
	return all
}

func steps(lines []string) []step {
	var list []step
	prompts := len(lines) > 0 && prompt.MatchString(lines[0])
	for _, line := range lines {
		found := prompt.FindStringSubmatch(line)
		switch {
		case !prompts:
			list = append(list, step{command: line})
		case found != nil:
			list = append(list, step{where: found[1], command: found[2]})
		default:
			last := &list[len(list)-1]
			last.prints = append(last.prints, line)
		}
	}
	return list
}

// rewritten returns a page in whose console blocks each of the commands has the output that run returns for it.
func rewritten(page string, run func(step) []string) string {
	var out, block []string
	inside := false
	for line := range strings.SplitSeq(page, "\n") {
		switch {
		case line == "```console":
			inside, block = true, nil
			out = append(out, line)
		case line == "```" && inside:
			inside = false
			if len(block) > 0 && !prompt.MatchString(block[0]) {
				out, block = append(out, block...), nil // It shows what to type, and nothing that is printed.
			}
			for _, s := range steps(block) {
				out = append(append(out, s.where+"$ "+s.command), run(s)...)
			}
			out = append(out, line)
		case inside:
			block = append(block, line)
		default:
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// matches reports whether text is what a page prints. A line "..." stands for any lines, and three dots in a line for
// any text.
func matches(printed []string, text string) bool {
	if len(printed) == 0 {
		return true // The page leaves it out.
	}
	var pattern strings.Builder
	for _, line := range printed {
		if line == "..." {
			pattern.WriteString(`(.*\n)*?`)
			continue
		}
		pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), `\.\.\.`, `.*`) + `\n`)
	}
	return regexp.MustCompile(`^` + pattern.String() + `$`).MatchString(strings.TrimRight(text, "\n") + "\n")
}

// TestSnippetsAreTheFiles compares manifests on the page of rights with the files that the page names for them.
func TestSnippetsAreTheFiles(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(testenv.Root(), filepath.FromSlash(rights)))
	if err != nil {
		t.Fatal(err)
	}
	snippets := regexp.MustCompile("(?s)\\(`(config/[^`]+[.]yaml)`\\)[^\n]*:\n\n```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(snippets) < 2 {
		t.Fatalf("the page has %d manifests of a file, want the rights for claims at least", len(snippets))
	}
	for _, snippet := range snippets {
		file, err := os.ReadFile(filepath.Join(testenv.Root(), filepath.FromSlash(snippet[1])))
		if err != nil {
			t.Fatal(err)
		}
		var want, got map[string]any
		if err := yaml.Unmarshal(file, &want); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(snippet[2]), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-%s, +%s:\n%s", snippet[1], rights, diff)
		}
	}
}

func TestRewritten(t *testing.T) {
	const page = "# A\n\n```console\nhub$ one\nold\nw1$ two\n```\n\n```yaml\nx$ y\n```\n\n```console\ntyped\n```\n"
	const want = "# A\n\n```console\nhub$ one\nold, hub\nw1$ two\nw1\n```\n\n```yaml\nx$ y\n```\n\n```console\ntyped\n```\n"
	got := rewritten(page, func(s step) []string { return []string{strings.Join(append(s.prints, s.where), ", ")} })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is printed is written below each command, and nothing else is touched: -want, +got:\n%s", diff)
	}
}

func TestMatches(t *testing.T) {
	cases := map[string]struct {
		reason  string
		printed []string
		text    string
		want    bool
	}{
		"Same":     {"A page that prints what is printed is right.", []string{"a", "b"}, "a\nb\n", true},
		"Missing":  {"A line that is not printed is wrong.", []string{"a", "b"}, "a\n", false},
		"More":     {"So is one that the page does not have.", []string{"a"}, "a\nb\n", false},
		"Order":    {"And another order.", []string{"a", "b"}, "b\na\n", false},
		"Dots":     {"Lines can be left out.", []string{"a", "...", "d"}, "a\nb\nc\nd\n", true},
		"DotsNone": {"If there are any.", []string{"a", "..."}, "a\n", true},
		"InLine":   {"Text can be left out.", []string{"x ... z"}, "x y z\n", true},
		"Literal":  {"A dot is a dot.", []string{"a.b"}, "axb\n", false},
		"Unsaid":   {"A page need not say what is printed.", nil, "a\n", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := matches(tc.printed, tc.text); got != tc.want {
				t.Errorf("%s want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}
