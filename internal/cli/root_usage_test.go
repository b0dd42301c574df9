// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/masthead-dev/masthead/internal/cli/why"
)

// misuse runs a command line that is wrong, without any cluster.
func misuse(t *testing.T, arguments ...string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code := Run(t.Context(), Options{
		Arguments: arguments, Streams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut},
		Getenv: func(string) string { return "" }, Clock: clocktesting.NewFakePassiveClock(now()),
	})
	lines := strings.Split(strings.TrimSpace(errOut.String()), "\n")
	if code != exitMisused || out.Len() > 0 || !strings.HasPrefix(lines[0], "error: ") {
		t.Errorf("%q: want %d and an error, got %d:\n%s%s", arguments, exitMisused, code, &out, &errOut)
	}
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "See 'kubectl masthead") || !strings.HasSuffix(last, " --help' for usage.") {
		t.Errorf("%q: want the error to name the help, got:\n%s", arguments, &errOut)
	}
}

// TestWhatCannotBeUnderstood is about every command, those that cobra adds included.
func TestWhatCannotBeUnderstood(t *testing.T) {
	var each func(*cobra.Command, []string)
	each = func(cmd *cobra.Command, path []string) {
		call := func(arguments ...string) { misuse(t, append(append([]string{}, path...), arguments...)...) }
		call("--nosuch")
		call("-Z")
		if cmd.Name() != "help" { // It takes any words, as that of kubectl does.
			call("nosuch", "of", "these")
		}
		if cmd.HasSubCommands() && cmd.HasParent() {
			call()
		}
		if cmd.Flags().Lookup("output") != nil {
			call(append(cmd.ValidArgs[:min(1, len(cmd.ValidArgs))], "-o", "xml")...)
		}
		for _, c := range cmd.Commands() {
			each(c, append(append([]string{}, path...), c.Name()))
		}
	}
	each(root(), nil)
	for _, one := range [][]string{
		{"clusters", "a", "b"}, {"apps", "a", "b"}, {"claims", "a"}, {"imports", "a"}, {"top", "nosuch"}, {"why"}, {"why", "x"}, {"why", "a", "b", "c"},
		{"enroll"}, {"unenroll", "a", "b"}, {"connect"}, {"health", "test", "a", "-f", "x"}, {"health", "test"}, {"debug", "dump", "a"},
		{"top", "--interval", "x"}, {"top", "--interval=-1s", "--metrics-file=x"}, {"clusters", "--namespace"},
	} {
		misuse(t, one...)
	}
}

// That nothing wrong was found is not the first that is read where something could not be.
func TestWhatCouldNotBeReadComesBeforeThatNothingIsWrong(t *testing.T) {
	unread := why.Cause{Ref: why.Ref{Kind: "Secret", Name: "w1-kubeconfig", Where: "hub"}, Message: "you lack the right"}
	wrong := why.Cause{Ref: why.Ref{Kind: "Database", Name: "sql", Where: "w1"}, Reason: "Conflict", State: "Failed"}
	for name, tc := range map[string]struct {
		answer why.Answer
		want   []string // The beginnings of these lines, in this order, without others before them.
	}{
		"Unread":         {why.Answer{NotLookedAt: []why.Cause{unread}}, []string{"Could not be read:", "  Secret", "", "Nothing wrong was found in what could be read."}},
		"UnreadAndWrong": {why.Answer{Causes: []why.Cause{wrong}, NotLookedAt: []why.Cause{unread}}, []string{"Failed: Database", "", "Could not be read:"}},
		"Well":           {why.Answer{Walk: why.Node{Ref: why.Ref{Kind: "Database", Name: "sql"}}}, []string{"Database sql: nothing wrong was found."}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			a := &app{Options: Options{Streams: genericiooptions.IOStreams{Out: &out}, Getenv: func(string) string { return "" }}}
			if err := a.writeAnswer(tc.answer); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(out.String(), "\n")
			for i, want := range tc.want {
				if !strings.HasPrefix(lines[i], want) || want == "" && lines[i] != "" {
					t.Fatalf("want %q, got:\n%s", tc.want, &out)
				}
			}
		})
	}
}

func TestUsageErrorsReadLikeKubectls(t *testing.T) {
	for _, tc := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"claimz"}, "error: unknown command \"claimz\" for \"kubectl masthead\"\n\nDid you mean this?\n\tclaims\n\nSee 'kubectl masthead --help' for usage.\n"},
		{[]string{"debug", "dumb"}, "error: unknown command \"dumb\" for \"kubectl masthead debug\"\n\nDid you mean this?\n\tdump\n\nSee 'kubectl masthead debug --help' for usage.\n"},
		{[]string{"claims", "x"}, "error: unexpected arguments: [x]\nSee 'kubectl masthead claims --help' for usage.\n"},
		{[]string{"claims", "--nosuch"}, "error: unknown flag: --nosuch\nSee 'kubectl masthead claims --help' for usage.\n"},
	} {
		var errOut bytes.Buffer
		Run(t.Context(), Options{Arguments: tc.arguments, Streams: genericiooptions.IOStreams{ErrOut: &errOut}})
		if errOut.String() != tc.want {
			t.Errorf("%q: want\n%s\ngot\n%s", tc.arguments, tc.want, &errOut)
		}
	}
}
