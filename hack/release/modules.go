// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"sort"

	"github.com/google/licenseclassifier/v2/assets"
)

// Module is one Go module that is linked into a binary.
type Module struct {
	// Path and Version are those of the module that was built: of the replacement, if the module is replaced.
	Path, Version string
	// Sum is the module's hash in go.sum's form.
	Sum string
	// Licenses are SPDX identifiers, sorted.
	Licenses []string
	// Files are the paths of the texts of its licences and notices.
	Files []string
}

// licenseFile matches the names that Go modules give to such texts.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|copyright)([.-].*)?$`)

// minConfidence is how similar a text and a known licence must be; the classifier's own tools use the same value.
const minConfidence = 0.9

// modulesOf reads the modules from a binary and finds their licences in the module cache.
func modulesOf(binary string) ([]Module, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("cannot read the modules of %q: %w", binary, err)
	}
	classifier, err := assets.DefaultClassifier()
	if err != nil {
		return nil, fmt.Errorf("cannot load the known licences: %w", err)
	}
	modules := make([]Module, 0, len(info.Deps))
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		module := Module{Path: dep.Path, Version: dep.Version, Sum: dep.Sum}
		folder, err := moduleFolder(dep)
		if err != nil {
			return nil, err
		}
		if err := addLicenses(&module, folder, func(text []byte) []string {
			var names []string
			for _, match := range classifier.Match(classifier.Normalize(text)).Matches {
				if match.MatchType == "License" && match.Confidence >= minConfidence {
					names = append(names, match.Name)
				}
			}
			return names
		}); err != nil {
			return nil, err
		}
		modules = append(modules, module)
	}
	sort.Slice(modules, func(i, j int) bool { return modules[i].Path < modules[j].Path })
	return modules, nil
}

// addLicenses finds the texts in the module's folder and names their licences.
func addLicenses(module *Module, folder string, classify func([]byte) []string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("cannot read module %q: %w", module.Path, err)
	}
	found := map[string]bool{}
	for _, entry := range entries {
		if entry.IsDir() || !licenseFile.MatchString(entry.Name()) {
			continue
		}
		path := filepath.Join(folder, entry.Name())
		text, err := os.ReadFile(path) //nolint:gosec // A file of the module cache.
		if err != nil {
			return fmt.Errorf("cannot read a licence of module %q: %w", module.Path, err)
		}
		module.Files = append(module.Files, path)
		for _, name := range classify(text) {
			found[name] = true
		}
	}
	if len(found) == 0 {
		return fmt.Errorf("cannot tell the licence of module %q %s: look at it before it is shipped", module.Path, module.Version)
	}
	for name := range found {
		module.Licenses = append(module.Licenses, name)
	}
	sort.Strings(module.Licenses)
	return nil
}

// moduleFolder is the folder of the module in the module cache; the module is downloaded if it is not there.
func moduleFolder(module *debug.Module) (string, error) {
	// Outside of any module: the version decides, not this command's go.mod.
	command := exec.Command("go", "mod", "download", "-json", module.Path+"@"+module.Version) //nolint:gosec // From our own binary.
	command.Dir = os.TempDir()
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	out, err := command.Output()
	var answer struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &answer); jsonErr != nil || answer.Dir == "" {
		return "", fmt.Errorf("cannot find module %s@%s: %s: %w", module.Path, module.Version, answer.Error, errOr(err, jsonErr))
	}
	return answer.Dir, nil
}

func errOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}
