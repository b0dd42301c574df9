// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// room is one package.
type room struct {
	// path is the import path without the path of the module.
	path  string
	files []file

	// uses counts the references to other packages of the module.
	uses map[string]int

	// methods is the number of methods of each type.
	methods map[string]int
}

// file is one source file of a package.
type file struct {
	name  string
	lines int

	// uses are the files of the same package that it refers to, each with the names that it refers to there.
	uses map[string]map[string]bool
}

// refer records a reference to a name in another file of the package.
func (f *file) refer(to, name string) {
	if f.uses[to] == nil {
		f.uses[to] = map[string]bool{}
	}
	f.uses[to][name] = true
}

// listed is the output of `go list -json` about a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	DepOnly                 bool
	Module                  *struct{ Path string }
}

// load reads packages from their sources, and their imports from the compiler's export data.
func load(dir string, patterns []string) ([]room, error) {
	list, err := goList(dir, patterns)
	if err != nil {
		return nil, err
	}
	exports, module := map[string]string{}, ""
	for _, p := range list {
		exports[p.ImportPath] = p.Export
		if !p.DepOnly && p.Module != nil {
			module = p.Module.Path
		}
	}
	var rooms []room
	for _, p := range list {
		if p.DepOnly || len(p.GoFiles) == 0 {
			continue
		}
		r, err := read(p, module, exports)
		if err != nil {
			return nil, fmt.Errorf("cannot read package %q: %w", p.ImportPath, err)
		}
		rooms = append(rooms, r)
	}
	slices.SortFunc(rooms, func(a, b room) int { return strings.Compare(a.path, b.path) })
	return rooms, nil
}

func goList(dir string, patterns []string) ([]listed, error) {
	args := append([]string{"list", "-trimpath", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,DepOnly,Module", "--"}, patterns...)
	cmd := exec.Command("go", args...) //nolint:gosec,noctx // The caller says which packages; it ends when they are compiled.
	// With the settings with which the programs are built, so that their packages are compiled only once.
	cmd.Dir, cmd.Stderr, cmd.Env = dir, os.Stderr, append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot list packages: %w", err)
	}
	var list []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			return nil, fmt.Errorf("cannot read what go list says: %w", err)
		}
		list = append(list, p)
	}
}

// read reads one package.
func read(p listed, module string, exports map[string]string) (room, error) {
	fset := token.NewFileSet()
	r := room{path: strings.TrimPrefix(p.ImportPath, module+"/"), uses: map[string]int{}, methods: map[string]int{}}
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		content, err := os.ReadFile(filepath.Join(p.Dir, name)) //nolint:gosec // It is what is asked for.
		if err != nil {
			return room{}, err
		}
		f, err := parser.ParseFile(fset, name, content, parser.SkipObjectResolution)
		if err != nil {
			return room{}, err
		}
		parsed = append(parsed, f)
		r.files = append(r.files, file{name: name, lines: bytes.Count(content, []byte("\n")), uses: map[string]map[string]bool{}})
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	checked, err := conf.Check(p.ImportPath, fset, parsed, info)
	if err != nil {
		return room{}, err
	}
	r.count(fset, checked, module, info)
	return r, nil
}

// count counts the references of a package, and the methods of its types.
func (r *room) count(fset *token.FileSet, checked *types.Package, module string, info *types.Info) {
	byName := map[string]*file{}
	for i := range r.files {
		byName[r.files[i].name] = &r.files[i]
	}
	for id, to := range info.Uses {
		switch {
		case to.Pkg() == nil:
		case to.Pkg() != checked:
			_, isName := to.(*types.PkgName)
			if to := to.Pkg().Path(); !isName && strings.HasPrefix(to, module+"/") {
				r.uses[strings.TrimPrefix(to, module+"/")]++
			}
		case to.Parent() == nil || to.Parent() == checked.Scope():
			// A field or a method, or a declaration of the package.
			from, in := fset.Position(id.Pos()).Filename, fset.Position(to.Pos()).Filename
			if _, isName := to.(*types.PkgName); !isName && from != in {
				byName[from].refer(in, to.Name())
			}
		}
	}
	for _, name := range checked.Scope().Names() {
		named, ok := checked.Scope().Lookup(name).Type().(*types.Named)
		if _, isType := checked.Scope().Lookup(name).(*types.TypeName); ok && isType && named.NumMethods() > 0 {
			r.methods[name] = named.NumMethods()
		}
	}
}
