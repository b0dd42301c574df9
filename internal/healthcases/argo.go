// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package healthcases

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// testFile is the file that lists the cases of a kind.
type testFile struct {
	Tests []struct {
		InputPath    string `json:"inputPath"`
		HealthStatus struct {
			Status string `json:"status"`
		} `json:"healthStatus"`
	} `json:"tests"`
}

// Folder reads the cases of a folder in the layout of Argo CD's resource_customizations: a folder for each group, in it
// one for each kind, with a file health_test.yaml that names the objects and their expected health. For Argo CD an
// object that is being deleted is Progressing, as it is for Masthead, regardless of what a customisation says. A case
// that expects another health for such an object tests the customisation alone, so it is judged without its deletion.
// One that expects Missing has an object that exists, and that is Degraded for Masthead if it lacks what it stands for.
func Folder(dir string) ([]Case, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*", "health_test.yaml"))
	if err != nil {
		return nil, fmt.Errorf("cannot look for cases in %q: %w", dir, err)
	}
	slices.Sort(paths)
	var cases []Case
	for _, path := range paths {
		var file testFile
		data, err := os.ReadFile(path) //nolint:gosec // The folder is the caller's to choose.
		if err != nil {
			return nil, fmt.Errorf("cannot read cases: %w", err)
		}
		if err := yaml.Unmarshal(data, &file); err != nil {
			return nil, fmt.Errorf("cannot parse %q: %w", path, err)
		}
		for _, test := range file.Tests {
			object, err := readObject(filepath.Join(filepath.Dir(path), test.InputPath))
			if err != nil {
				return nil, err
			}
			want := test.HealthStatus.Status
			if want != "Progressing" {
				object.SetDeletionTimestamp(nil)
			}
			if want == "Missing" {
				want = "Degraded"
			}
			folder, err := filepath.Rel(dir, filepath.Dir(path))
			if err != nil {
				return nil, fmt.Errorf("cannot name the cases of %q: %w", path, err)
			}
			cases = append(cases, Case{
				Name: filepath.Join(folder, filepath.Base(test.InputPath)), Object: object, Want: want, StatusExpected: true,
			})
		}
	}
	return cases, nil
}

// readObject decodes an object like the API server's answers: a whole number becomes an int64.
func readObject(path string) (*unstructured.Unstructured, error) {
	data, err := os.ReadFile(path) //nolint:gosec // The folder is the caller's to choose.
	if err != nil {
		return nil, fmt.Errorf("cannot read the object of a case: %w", err)
	}
	text, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, fmt.Errorf("cannot parse %q: %w", path, err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		return nil, fmt.Errorf("cannot decode %q: %w", path, err)
	}
	return object, nil
}
