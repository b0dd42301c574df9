// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection_test

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/masthead-dev/masthead/internal/test/fakecloud/layouts"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// webhookPrograms are the programs of hack/webhooks, and the modules whose admission code they have.
var webhookPrograms = map[string]struct{ program, module string }{
	"EKS": {"capa", "sigs.k8s.io/cluster-api-provider-aws/v2"},
	"GKE": {"capg", "sigs.k8s.io/cluster-api-provider-gcp"},
}

// verdict is what a program says of an object.
type verdict struct {
	Kind, Name, Refused string
	Changed             []string
}

// TestReflect_Webhooks asks the providers' own admission code about every layout, and records what it says. Without the
// programs, which `make webhooks` builds, it holds only that there is a record of each layout, and no refusal.
func TestReflect_Webhooks(t *testing.T) {
	t.Parallel()
	page := filepath.Join(testenv.Root(), "docs", "design", "importer-webhooks.md")
	recorded, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(string(recorded), "\n| Layout |")
	if !found {
		t.Fatalf("%s has no table", page)
	}
	folder := os.Getenv("MASTHEAD_WEBHOOKS")
	table := "\n| Layout | Provider | Objects | Overwritten by defaulting |\n|---|---|---|---|\n"
	for _, name := range layouts.Names() {
		f := loadFixture(t, name)
		from, ok := webhookPrograms[f.Cloud]
		switch {
		case !ok:
		case folder == "":
			if !strings.Contains(string(recorded), "| "+name+" | ") {
				t.Errorf("%s says nothing of the layout %s: make webhooks", page, name)
			}
		default:
			program := filepath.Join(folder, from.program)
			objects, changed := ask(t, program, f)
			table += fmt.Sprintf("| %s | %s | %d | %s |\n", name, versionIn(t, program, from.module), objects, strings.Join(changed, ", "))
		}
	}
	if folder == "" {
		return
	}
	if diff := cmp.Diff(string(recorded), before+table); diff != "" {
		t.Logf("the record changed (-was, +is):\n%s", diff)
	}
	if err := os.WriteFile(page, []byte(before+table), 0o644); err != nil {
		t.Fatal(err)
	}
}

// ask returns how many objects of a layout a program admitted, and which fields it overwrote. A refusal is a failure.
func ask(t *testing.T, program string, f layouts.Fixture) (admitted int, changed []string) {
	t.Helper()
	cloud := reflection.Cloud(f.Cloud)
	_, reflected := readHub(t).reflect(t, newImport(f), served(cloud, cloud == reflection.EKS, true), f)
	var objects []any
	for _, o := range reflected.Objects {
		objects = append(objects, o.Object.Object)
	}
	in, err := json.Marshal(objects)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program)
	command.Stdin, command.Stderr = bytes.NewReader(in), os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var verdicts []verdict
	if err := json.Unmarshal(out, &verdicts); err != nil {
		t.Fatal(err)
	}
	if len(verdicts) == 0 {
		t.Errorf("%s: the program knows none of the kinds", f.ClusterName)
	}
	for _, v := range verdicts {
		if v.Refused != "" {
			t.Errorf("%s: %s %q is refused: %s", f.Description, v.Kind, v.Name, v.Refused)
			continue
		}
		admitted++
		for _, path := range v.Changed {
			changed = append(changed, fmt.Sprintf("`%s` of %s", path, v.Kind))
		}
	}
	return admitted, changed
}

func versionIn(t *testing.T, program, module string) string {
	t.Helper()
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range info.Deps {
		if m.Path == module {
			return strings.ToUpper(filepath.Base(program)) + " " + m.Version
		}
	}
	t.Fatalf("%s has no %s", program, module)
	return ""
}
