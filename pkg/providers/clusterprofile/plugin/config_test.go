// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
)

func TestLoad(t *testing.T) {
	type want struct {
		names []string
		err   string
	}
	with := func(name, exec, more string) string {
		return `{"name":"` + name + `","execConfig":{` + exec + `}` + more + `}`
	}
	const v1 = `"apiVersion":"client.authentication.k8s.io/v1"`
	const sh = v1 + `,"command":"/bin/sh"`
	for name, tc := range map[string]struct {
		reason    string
		providers string
		want      want
	}{
		"None": {reason: "A file without plugins is a mistake.", want: want{err: "there are none"}},
		"Order": {
			reason:    "The file's order is kept.",
			providers: with("b", sh, "") + "," + with("a", sh, ""), want: want{names: []string{"b", "a"}},
		},
		"Full": {
			reason: "All that matters can be said.",
			providers: with("a", sh+`,"args":["-c","x"],"env":[{"name":"A","value":"b"}],"provideClusterInfo":true,`+
				`"installHint":"x","interactiveMode":"IfAvailable"`,
				`,"profileSourcedCLIArgsPolicy":"Ignore","profileSourcedEnvVarsPolicy":"Ignore"`),
			want: want{names: []string{"a"}},
		},
		"Unknown": {
			reason: "It is misspelt.", providers: with("a", sh+`,"arg":[]`, ""), want: want{err: `unknown field "arg"`},
		},
		"Twice": {
			reason:    "A key twice says two things.",
			providers: with("a", sh+`,"command":"/bin/true"`, ""), want: want{err: "already set"},
		},
		"Duplicate": {
			reason: "A name twice does.", providers: with("a", sh, "") + "," + with("a", sh, ""), want: want{err: "not unique"},
		},
		"NoName": {reason: "Nothing can name it.", providers: with("", sh, ""), want: want{err: "not unique"}},
		"Reader": {
			reason: "The operator's plugin reads Secrets where Masthead does not.", providers: with("secretreader", sh, ""),
			want: want{names: []string{"secretreader"}},
		},
		"Relative": {
			reason: "It depends on the folder.", providers: with("a", v1+`,"command":"bin/sh"`, ""), want: want{err: "absolute"},
		},
		"Searched": {
			reason: "It depends on the PATH.", providers: with("a", v1+`,"command":"sh"`, ""), want: want{err: "absolute"},
		},
		"NoCommand": {reason: "Nothing can be run.", providers: with("a", v1, ""), want: want{err: "absolute"}},
		"Missing": {
			reason: "It is not there.", providers: with("a", v1+`,"command":"/none"`, ""), want: want{err: "no such file"},
		},
		"Folder": {
			reason: "It is no program.", providers: with("a", v1+`,"command":"/"`, ""), want: want{err: "cannot be run"},
		},
		"Beta": {
			reason:    "Another version is not spoken.",
			providers: with("a", `"apiVersion":"client.authentication.k8s.io/v1beta1","command":"/bin/sh"`, ""),
			want:      want{err: "apiVersion"},
		},
		"NoVersion": {
			reason: "Nor is any.", providers: with("a", `"command":"/bin/sh"`, ""), want: want{err: "apiVersion"},
		},
		"Interactive": {
			reason:    "There is no terminal.",
			providers: with("a", sh+`,"interactiveMode":"Always"`, ""), want: want{err: "terminal"},
		},
		"Arguments": {
			reason:    "A profile must not choose arguments.",
			providers: with("a", sh, `,"profileSourcedCLIArgsPolicy":"Append"`), want: want{err: "must be Ignore"},
		},
		"Variables": {
			reason:    "Nor variables.",
			providers: with("a", sh, `,"profileSourcedEnvVarsPolicy":"AppendIfNotExists"`), want: want{err: "must be Ignore"},
		},
		"VariablesReplaced": {
			reason:    "Least of all those of the operator.",
			providers: with("a", sh, `,"profileSourcedEnvVarsPolicy":"Replace"`), want: want{err: "must be Ignore"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "access.json")
			if err := os.WriteFile(path, []byte(`{"providers":[`+tc.providers+`]}`), 0o600); err != nil {
				t.Fatal(err)
			}
			p, err := Load(path, []string{"fleet"})
			if tc.want.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want.err) {
					t.Errorf("%s\nwant an error with %q, got %v", tc.reason, tc.want.err, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want.names, p.Names("fleet")); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			if got := p.Names("team"); got != nil {
				t.Errorf("want none in a namespace that the operator does not name, got %v", got)
			}
			theirs, err := access.NewFromFile(path)
			if err != nil || len(theirs.Providers) != len(tc.want.names) {
				t.Errorf("want a file that cluster-inventory-api reads alike, got %+v, %v", theirs, err)
			}
		})
	}
	if _, err := Load("/none", nil); err == nil {
		t.Error("want an error for a file that is not there")
	}
}
