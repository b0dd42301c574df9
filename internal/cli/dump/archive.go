// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"
)

// An Archive takes the files of a dump.
type Archive interface {
	// Add adds a file. The name is a path with slashes, confined to the archive.
	Add(name string, content []byte) error

	// Close finishes the archive.
	Close() error
}

// NewTar returns an archive that is a compressed tar, with everything in one folder.
func NewTar(w io.Writer, folder string, at time.Time) Archive {
	compressed := gzip.NewWriter(w)
	return &tarArchive{folder: folder, at: at, compressed: compressed, tar: tar.NewWriter(compressed)}
}

type tarArchive struct {
	folder     string
	at         time.Time
	compressed *gzip.Writer
	tar        *tar.Writer
}

// Add implements Archive.
func (a *tarArchive) Add(name string, content []byte) error {
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: path.Join(a.folder, name), Size: int64(len(content)), Mode: 0o600, ModTime: a.at, Format: tar.FormatPAX,
	}
	if err := a.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("cannot write %q: %w", name, err)
	}
	if _, err := a.tar.Write(content); err != nil {
		return fmt.Errorf("cannot write %q: %w", name, err)
	}
	return nil
}

// Close implements Archive.
func (a *tarArchive) Close() error { return errors.Join(a.tar.Close(), a.compressed.Close()) }

// NewFolder returns an archive that is a folder, which it creates.
func NewFolder(name string) (Archive, error) {
	if err := os.MkdirAll(name, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the folder %q: %w", name, err)
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("cannot open the folder %q: %w", name, err)
	}
	return &folderArchive{root: root}, nil
}

type folderArchive struct{ root *os.Root }

// Add implements Archive.
func (a *folderArchive) Add(name string, content []byte) error {
	if err := a.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return fmt.Errorf("cannot create the folder of %q: %w", name, err)
	}
	if err := a.root.WriteFile(name, content, 0o600); err != nil {
		return fmt.Errorf("cannot write %q: %w", name, err)
	}
	return nil
}

// Close implements Archive.
func (a *folderArchive) Close() error { return a.root.Close() }

// fileName turns a name from an API server into a path element.
func fileName(name string) string {
	clean := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-._", c) {
			return c
		}
		return '_'
	}, name)
	if strings.Trim(clean, ".") == "" {
		return "_" + clean
	}
	return clean
}
