// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command house prints how the code of this repository is divided: `go run ./hack/house [-C DIR] [PATTERN...]`.
//
// It prints packages with their files and lines, references between packages, those that run upward, cycles of files
// within a package, and the types with the most methods. Tests are not counted. It reads the sources with go/types, so
// that it counts the same references as the compiler. The packages must build.
//
// With -check it prints what exceeds the limits instead, and fails if anything does.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	dir := flag.String("C", ".", "the `directory` of the module")
	detail := flag.Bool("references", false, "print every reference between packages, and within cycles, and not only their number")
	bounds := flag.Bool("check", false, "print what is out of bounds, and nothing else, and fail if anything is")
	flag.Parse()
	patterns := flag.Args()
	if len(patterns) == 0 {
		patterns = []string{"./apis/...", "./pkg/...", "./cmd/..."}
	}
	if err := run(os.Stdout, *dir, patterns, *detail, *bounds); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, dir string, patterns []string, detail, bounds bool) error {
	packages, err := load(dir, patterns)
	if err != nil {
		return err
	}
	if bounds {
		return check(packages)
	}
	return report(out, packages, detail)
}
