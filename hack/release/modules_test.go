// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	spdxjson "github.com/spdx/tools-golang/json"
)

func TestAddLicenses(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  map[string]string
		want   Module
		err    string
	}{
		"AllTextsOfAModule": {
			reason: "A module can be under several licences, and its notices must be shipped with them",
			files:  map[string]string{"LICENSE": "MIT", "LICENSE-APACHE.txt": "Apache-2.0", "NOTICE": "", "licensing.go": "GPL"},
			want:   Module{Path: "m", Licenses: []string{"Apache-2.0", "MIT"}, Files: []string{"LICENSE", "LICENSE-APACHE.txt", "NOTICE"}},
		},
		"SameLicenceTwice": {
			reason: "A licence is listed once, however many files have its text",
			files:  map[string]string{"COPYING": "MIT", "LICENCE.md": "MIT"},
			want:   Module{Path: "m", Licenses: []string{"MIT"}, Files: []string{"COPYING", "LICENCE.md"}},
		},
		"NoLicence": {
			reason: "A module without a licence may not be copied, and is not shipped",
			files:  map[string]string{"README.md": "MIT"},
			err:    "cannot tell the licence",
		},
		"UnknownLicence": {
			reason: "A text that is not known is read by a person before it is shipped",
			files:  map[string]string{"LICENSE": ""},
			err:    "cannot tell the licence",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for file, text := range c.files {
				if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got := Module{Path: "m"}
			err := addLicenses(&got, folder, func(text []byte) []string { return strings.Fields(string(text)) })
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%s: got error %v", c.reason, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			for i := range got.Files {
				got.Files[i] = filepath.Base(got.Files[i])
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}
		})
	}
}

// The test binary is a real one: its modules and their licences are those of this command.
func TestModulesOfARealBinary(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	modules, err := modulesOf(binary)
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range modules {
		if module.Path != "github.com/google/go-containerregistry" {
			continue
		}
		if module.Version == "" || !strings.HasPrefix(module.Sum, "h1:") || !cmp.Equal(module.Licenses, []string{"Apache-2.0"}) {
			t.Errorf("got %+v", module)
		}
		return
	}
	t.Errorf("go-containerregistry is not among %d modules", len(modules))
}

func TestSBOMIsReadBackWhole(t *testing.T) {
	modules := []Module{
		{Path: "example.com/a/v2", Version: "v2.0.1", Sum: "h1:x", Licenses: []string{"Apache-2.0", "MIT"}},
		{Path: "example.com/b_c", Version: "v0.1.0", Sum: "h1:y", Licenses: []string{"BSD-3-Clause"}},
	}
	var text bytes.Buffer
	if err := spdxjson.Write(sbomOf(modules, "v1.2.3", "00ff", time.Unix(0, 0).UTC()), &text); err != nil {
		t.Fatal(err)
	}
	got, err := spdxjson.Read(&text)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Packages) != 3 || len(got.Relationships) != 3 {
		t.Fatalf("got %d packages and %d relationships, want the manager and two modules", len(got.Packages), len(got.Relationships))
	}
	module := got.Packages[1]
	if module.PackageLicenseDeclared != "Apache-2.0 AND MIT" || module.PackageExternalReferences[0].Locator != "pkg:golang/example.com/a/v2@v2.0.1" {
		t.Errorf("got %+v", module)
	}
}

func TestSourceDate(t *testing.T) {
	if _, err := sourceDate(func(string) string { return "" }); err == nil {
		t.Error("a release without a date of its source would not be reproducible, and was made")
	}
	got, err := sourceDate(func(string) string { return "1700000000" })
	if err != nil || got.Format(time.RFC3339) != "2023-11-14T22:13:20Z" {
		t.Errorf("got %s, %v", got, err)
	}
}
