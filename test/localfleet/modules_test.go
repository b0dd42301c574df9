// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindBinDirNamesWhatIsMissing(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, Etcd), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := findBinDir(folder, "", []string{Etcd, Kwok})
	if err == nil {
		t.Fatal("findBinDir(): want an error when a program is missing")
	}
	for _, text := range []string{Kwok, folder, "build-controlplane.sh"} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("findBinDir(): want an error that mentions %q, got: %v", text, err)
		}
	}
	got, err := findBinDir(folder, "", []string{Etcd})
	if err != nil || got != folder {
		t.Errorf("findBinDir(): want %s, got %s, %v", folder, got, err)
	}
}

func TestFindBinDirFromEnvironment(t *testing.T) {
	t.Setenv("MASTHEAD_CONTROLPLANE_BIN", "")
	t.Setenv("KUBEBUILDER_ASSETS", "/second")
	if got, err := findBinDir("", "/repository", nil); err != nil || got != "/second" {
		t.Errorf("findBinDir(): want /second, got %s, %v", got, err)
	}
	t.Setenv("MASTHEAD_CONTROLPLANE_BIN", "/first")
	if got, err := findBinDir("", "/repository", nil); err != nil || got != "/first" {
		t.Errorf("findBinDir(): want /first, got %s, %v", got, err)
	}
	t.Setenv("MASTHEAD_CONTROLPLANE_BIN", "")
	t.Setenv("KUBEBUILDER_ASSETS", "")
	if got, err := findBinDir("", "/repository", nil); err != nil || got != "/repository/bin/controlplane" {
		t.Errorf("findBinDir(): want /repository/bin/controlplane, got %s, %v", got, err)
	}
}

func TestRepository(t *testing.T) {
	got, err := Repository()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(got, "test", "localfleet", "modules_test.go")); err != nil {
		t.Errorf("Repository(): %s is not the root: %v", got, err)
	}
}

func TestEmbeddedManifests(t *testing.T) {
	for _, folder := range []string{"hub", "workload", "cluster-api", "samples"} {
		objects, err := embeddedManifests(folder)
		if err != nil {
			t.Fatal(err)
		}
		if len(objects) == 0 {
			t.Errorf("embeddedManifests(%q): no objects", folder)
		}
		for _, object := range objects {
			if object.GetName() == "" || object.GetKind() == "" || object.GetAPIVersion() == "" {
				t.Errorf("embeddedManifests(%q): not an object: %v", folder, object.Object)
			}
		}
	}
}
