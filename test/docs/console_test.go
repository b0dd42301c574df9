// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/masthead-dev/masthead/test/localfleet"
)

// prompts are the names of clusters in the examples; see docs/README.md.
func prompts() []string {
	return []string{"", noPrompt, "hub", "w1", "w2", "new", "staging"}
}

// ofCobra are the commands of the plugin that cobra adds.
func ofCobra() []string { return []string{"completion", "help"} }

// TestCommandsNameWhatThereIs checks what commands on all pages name: targets of make, files, folders and flags. What
// the commands do is tested elsewhere: test/printed runs the pages about installation, the end-to-end tests the rest.
func TestCommandsNameWhatThereIs(t *testing.T) {
	root, err := localfleet.Repository()
	if err != nil {
		t.Fatal(err)
	}
	makefile := files(t, "Makefile")["Makefile"]
	flags := files(t, "flags.md")["docs/reference/flags.md"]
	commands := matches(files(t, ".go"), `Use:\s+"([a-z]+)`)
	target := regexp.MustCompile(`^make ([a-z0-9-]+)`)
	path := regexp.MustCompile(`(?:^|[ =])((?:config|charts|hack|test|docs)(?:/[\w.-]+)+)`)
	flag := regexp.MustCompile(` --([a-z0-9-]+)`)
	plugin := regexp.MustCompile(`^kubectl masthead ([a-z]+)`)
	for _, s := range allSteps(t) {
		if !slices.Contains(prompts(), s.prompt) {
			t.Errorf("%s: no page says what the prompt %q is", s.place, s.prompt)
		}
		if m := target.FindStringSubmatch(s.command); m != nil && !strings.Contains(makefile, "\n"+m[1]+":") {
			t.Errorf("%s: %s: make has no such target", s.place, s.command)
		}
		for _, m := range path.FindAllStringSubmatch(s.command, -1) {
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s: %s: there is no %s", s.place, s.command, m[1])
			}
		}
		if strings.HasPrefix(s.command, "bin/manager ") {
			for _, m := range flag.FindAllStringSubmatch(s.command, -1) {
				if !strings.Contains(flags, "`--"+m[1]+"`") {
					t.Errorf("%s: %s: the manager has no flag --%s", s.place, s.command, m[1])
				}
			}
		}
		m := plugin.FindStringSubmatch(s.command)
		if m != nil && !slices.Contains(ofCobra(), m[1]) && !strings.HasPrefix(commands[m[1]], "internal/cli/") {
			t.Errorf("%s: %s: the plugin has no such command", s.place, s.command)
		}
	}
}
