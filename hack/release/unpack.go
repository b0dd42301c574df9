// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// unpackImage writes the files of one platform of an image into a folder, as a container engine would before it starts
// the image.
func unpackImage(archive, platform, folder string) error {
	temporary, err := os.MkdirTemp("", "masthead-unpack-")
	if err != nil {
		return fmt.Errorf("cannot create a folder for the image: %w", err)
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	in, err := os.Open(archive) //nolint:gosec // Named by the caller.
	if err != nil {
		return fmt.Errorf("cannot open the image: %w", err)
	}
	defer func() { _ = in.Close() }()
	if err := extract(in, temporary); err != nil {
		return fmt.Errorf("cannot read image %q: %w", archive, err)
	}
	index, err := layout.ImageIndexFromPath(temporary)
	if err != nil {
		return fmt.Errorf("cannot read image %q: %w", archive, err)
	}
	image, err := imageOf(index, platform)
	if err != nil {
		return fmt.Errorf("cannot find %s in image %q: %w", platform, archive, err)
	}
	files := mutate.Extract(image)
	defer func() { _ = files.Close() }()
	if err := extract(files, folder); err != nil {
		return fmt.Errorf("cannot unpack image %q: %w", archive, err)
	}
	return nil
}

// imageOf finds the platform in the one index that the layout's index names.
func imageOf(index v1.ImageIndex, platform string) (v1.Image, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("there are %d images, not one", len(manifest.Manifests))
	}
	platforms, err := index.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		return nil, err
	}
	wanted, err := v1.ParsePlatform(platform)
	if err != nil {
		return nil, err
	}
	descriptors, err := platforms.IndexManifest()
	if err != nil {
		return nil, err
	}
	matches := match.Platforms(*wanted)
	for _, descriptor := range descriptors.Manifests {
		if matches(descriptor) {
			return platforms.Image(descriptor.Digest)
		}
	}
	return nil, errors.New("it is not in the image")
}

// extract writes the folders and files of a tar stream below folder. A path that leads out of the folder is an error:
// os.Root rejects it.
func extract(in io.Reader, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // To be read by all.
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for reader := tar.NewReader(in); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			continue // Folders are created for their files; our images contain nothing else.
		}
		if err := extractFile(root, header, reader); err != nil {
			return err
		}
	}
}

func extractFile(root *os.Root, header *tar.Header, content io.Reader) error {
	if err := root.MkdirAll(filepath.Dir(header.Name), 0o755); err != nil {
		return err
	}
	out, err := root.OpenFile(header.Name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, header.FileInfo().Mode().Perm())
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, content); err != nil { //nolint:gosec // Our own image.
		_ = out.Close()
		return err
	}
	return out.Close()
}
