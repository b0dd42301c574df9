// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// rootsPath is where Go, and most programs, look for root certificates.
const rootsPath = "/etc/ssl/certs/ca-certificates.crt"

// file is one entry of a layer or of a tar file. Folders are created as needed.
type file struct {
	path    string
	mode    int64
	content []byte
}

// commonLayer contains what does not depend on the platform: Mozilla's roots, which the Go project keeps as a module (a
// base image would be one more thing to trust and to update), the user, and the licences.
func commonLayer(in imageInput) (v1.Layer, error) {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue // It is trusted under conditions that a PEM file cannot state.
		}
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, fmt.Errorf("cannot write the root certificates: %w", err)
		}
	}
	files := []file{
		{path: strings.TrimPrefix(rootsPath, "/"), mode: 0o644, content: roots.Bytes()},
		{path: "etc/passwd", mode: 0o644, content: fmt.Appendf(nil, "nonroot:x:%d:%d:nonroot:/:/sbin/nologin\n", userID, userID)},
		{path: "etc/group", mode: 0o644, content: fmt.Appendf(nil, "nonroot:x:%d:\n", userID)},
	}
	if in.Licenses != "" {
		licenses, err := filesBelow(in.Licenses, "licenses")
		if err != nil {
			return nil, err
		}
		files = append(files, licenses...)
	}
	return layerOf(files, in.Created)
}

// binaryLayer contains the manager.
func binaryLayer(path string, created time.Time) (v1.Layer, error) {
	content, err := os.ReadFile(path) //nolint:gosec // Named on the command line.
	if err != nil {
		return nil, fmt.Errorf("cannot read the manager: %w", err)
	}
	return layerOf([]file{{path: "manager", mode: 0o755, content: content}}, created)
}

func layerOf(files []file, created time.Time) (v1.Layer, error) {
	var content bytes.Buffer
	if err := tarOf(&content, files, created); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}

// filesBelow reads a folder.
func filesBelow(folder, prefix string) ([]file, error) {
	var files []file
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path) //nolint:gosec // Below a folder of our own.
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		files = append(files, file{path: filepath.ToSlash(filepath.Join(prefix, relative)), mode: 0o644, content: content})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", folder, err)
	}
	return files, nil
}

// tarOf writes the files, sorted, each after its folders, owned by root and with the same time stamp.
func tarOf(w io.Writer, files []file, created time.Time) error {
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	out := tar.NewWriter(w)
	made := map[string]bool{}
	for _, f := range files {
		parts := strings.Split(f.path, "/")
		for i := 1; i < len(parts); i++ {
			folder := strings.Join(parts[:i], "/") + "/"
			if made[folder] {
				continue
			}
			made[folder] = true
			if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder, Mode: 0o755, ModTime: created}); err != nil {
				return fmt.Errorf("cannot write %q: %w", folder, err)
			}
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.path, Mode: f.mode, Size: int64(len(f.content)), ModTime: created}
		if err := out.WriteHeader(header); err != nil {
			return fmt.Errorf("cannot write %q: %w", f.path, err)
		}
		if _, err := out.Write(f.content); err != nil {
			return fmt.Errorf("cannot write %q: %w", f.path, err)
		}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("cannot end the archive: %w", err)
	}
	return nil
}

// writeTar writes the files of a folder as a tar file.
func writeTar(folder string, created time.Time, out string) error {
	files, err := filesBelow(folder, "")
	if err != nil {
		return err
	}
	var content bytes.Buffer
	if err := tarOf(&content, files, created); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil { //nolint:gosec // To be read by all.
		return fmt.Errorf("cannot write %q: %w", out, err)
	}
	return os.WriteFile(out, content.Bytes(), 0o644) //nolint:gosec // To be read by all.
}
