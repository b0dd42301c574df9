// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// writeLicenses writes the texts of the licences of all modules of the binaries into the folder, with an index. Modules
// that only one platform links are included.
func writeLicenses(in binaries, folder string) error {
	all := map[string]Module{}
	for _, binary := range in {
		modules, err := modulesOf(binary)
		if err != nil {
			return err
		}
		for _, module := range modules {
			all[module.Path] = module
		}
	}
	paths := make([]string, 0, len(all))
	for path := range all {
		paths = append(paths, path)
	}
	sort.Strings(paths)

	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("cannot replace %q: %w", folder, err)
	}
	var index strings.Builder
	for _, path := range paths {
		module := all[path]
		fmt.Fprintf(&index, "%s %s: %s\n", module.Path, module.Version, strings.Join(module.Licenses, ", "))
		for _, file := range module.Files {
			target := filepath.Join(folder, filepath.FromSlash(module.Path), filepath.Base(file))
			if err := copyFile(file, target); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(folder, "INDEX"), []byte(index.String()), 0o644) //nolint:gosec // To be read by all.
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from) //nolint:gosec // A file of the module cache.
	if err != nil {
		return fmt.Errorf("cannot copy %q: %w", from, err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // To be read by all.
		return fmt.Errorf("cannot copy %q: %w", from, err)
	}
	return os.WriteFile(to, text, 0o644) //nolint:gosec // To be read by all.
}
