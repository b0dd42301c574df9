// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package healthcases

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// write creates a folder of cases from the texts of files by their path.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const list = `tests:
- healthStatus: {status: %s, message: x}
  inputPath: testdata/a.yaml
`

func TestFolder(t *testing.T) {
	object := "apiVersion: db.example.org/v1\nkind: Database\nmetadata: {name: a, generation: 2, deletionTimestamp: \"2026-01-02T03:04:05Z\"}\n"
	cases := map[string]struct {
		reason string
		files  map[string]string
		want   int
		err    string
		// deleted means that the object of the first case is being deleted.
		deleted bool
	}{
		"Healthy": {
			reason: "A case that is not Progressing is about the customisation alone.",
			files: map[string]string{
				"db.example.org/Database/health_test.yaml": strings.ReplaceAll(list, "%s", "Healthy"), "db.example.org/Database/testdata/a.yaml": object,
			}, want: 1,
		},
		"Progressing": {
			reason: "What is being deleted is Progressing for both.",
			files: map[string]string{
				"db.example.org/Database/health_test.yaml": strings.ReplaceAll(list, "%s", "Progressing"), "db.example.org/Database/testdata/a.yaml": object,
			}, want: 1, deleted: true,
		},
		"OtherFiles": {
			reason: "Only folders of kinds have cases.",
			files:  map[string]string{"health_test.yaml": "x", "db.example.org/actions/a.lua": "x", "embed.go": "package x"},
		},
		"NoObject": {
			reason: "A case whose object is missing is not left out.",
			files:  map[string]string{"db.example.org/Database/health_test.yaml": strings.ReplaceAll(list, "%s", "Healthy")}, err: "cannot read the object of a case",
		},
		"NotYAML": {
			reason: "Nor is a list that cannot be read.",
			files:  map[string]string{"db.example.org/Database/health_test.yaml": "tests: {"}, err: "cannot parse",
		},
		"NoKind": {
			reason: "Nor is an object that is none.",
			files: map[string]string{
				"db.example.org/Database/health_test.yaml": strings.ReplaceAll(list, "%s", "Healthy"), "db.example.org/Database/testdata/a.yaml": "a: b",
			}, err: "cannot decode",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Folder(write(t, tc.files))
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("%s: want the error %q, got %v", tc.reason, tc.err, err)
			}
			if len(got) != tc.want {
				t.Fatalf("%s: want %d cases, got %d", tc.reason, tc.want, len(got))
			}
			if len(got) == 0 {
				return
			}
			if got[0].Name != "db.example.org/Database/a.yaml" {
				t.Errorf("want the group, the kind and the file, got %q", got[0].Name)
			}
			if got[0].Object.GetGeneration() != 2 {
				t.Errorf("want a whole number, got %v", got[0].Object.Object["metadata"])
			}
			if deleted := got[0].Object.GetDeletionTimestamp() != nil; deleted != tc.deleted {
				t.Errorf("%s: want deleted %v, got %v", tc.reason, tc.deleted, deleted)
			}
		})
	}
}

func TestFixtures(t *testing.T) {
	dir := write(t, map[string]string{"db.yaml": `Database.db.example.org:
- Healthy: {phase: Running, conditions: ["db.example.org/Ready=True/Fine: all is well", {type: Odd, status: "False"}], .generation: 2, .spec: {size: 3}}
- Progressing:
'*.*.example.org':
- Degraded: {nodes: [{conditions: [Ready=False]}]}
`})
	fixtures, err := Fixtures(dir)
	if err != nil {
		t.Fatal(err)
	}
	object := fixtures["Database.db.example.org"][0].Object("db.example.org", "v1", "Database").Object
	want := map[string]any{
		"phase": "Running", "conditions": []any{
			map[string]any{"type": "db.example.org/Ready", "status": "True", "reason": "Fine", "message": "all is well"},
			map[string]any{"type": "Odd", "status": "False"},
		},
	}
	if diff := cmp.Diff(want, object["status"]); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if object["metadata"].(map[string]any)["generation"] != int64(2) || object["spec"].(map[string]any)["size"] != int64(3) {
		t.Errorf("want the generation and the spec beside the status, got %v", object)
	}
	if _, has := fixtures["Database.db.example.org"][1].Object("db.example.org", "v1", "Database").Object["status"]; has {
		t.Error("want no status where nothing is written")
	}
	cases, err := OfFixtures(dir)
	if err != nil || len(cases) != 3 {
		t.Fatalf("want three cases, got %d, %v", len(cases), err)
	}
	if got := cases[0].Object.GroupVersionKind().String(); got != "example.example.org/v1, Kind=Example" {
		t.Errorf("want an example of the kinds, got %s", got)
	}
	for name, text := range map[string]string{"has not one health": "A.b:\n- {Healthy: {}, Degraded: {}}\n", "cannot parse": "A: {", "cannot decode": "A: x\n"} {
		if _, err := Fixtures(write(t, map[string]string{"a.yaml": text})); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want the error %q, got %v", name, err)
		}
	}
}
