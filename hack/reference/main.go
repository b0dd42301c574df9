// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command reference writes pages of docs/reference that are generated from the repository: the fields of the kinds from
// the CRDs, the reasons from the constants, and the rules from the roles.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		_, _ = fmt.Fprintln(os.Stderr, "usage: reference FOLDER")
		os.Exit(2)
	}
	for name, page := range map[string]func(root string) (string, error){"kinds.md": kinds, "reasons.md": reasons, "rbac.md": rbac} {
		text, err := page(".")
		if err == nil {
			err = os.WriteFile(filepath.Join(os.Args[1], name), []byte(text), 0o644) //nolint:gosec // A page is for everybody.
		}
		if err != nil {
			_, _ = fmt.Fprintf(os.Stderr, "reference: cannot write %s: %v\n", name, err)
			os.Exit(1)
		}
	}
}
