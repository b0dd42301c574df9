// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The user that the manager runs as; config/manager names the same user.
const userID = 65532

// imageInput is what an image is built from.
type imageInput struct {
	// Binaries are the binaries of the manager for each platform.
	Binaries binaries
	// Name is the name of the image with its tag; Version and Revision are written into its annotations.
	Name, Version, Revision string
	// Licenses is the folder that the command licenses wrote; it may be empty.
	Licenses string
	// Created is the time stamp of everything in the image.
	Created time.Time
}

// writeImage writes the image of all platforms as a tar file in OCI's image layout, and returns the digest of its
// index. podman, containerd, skopeo and kind can load such a file, and so can Docker, for which the file contains a
// separate list.
func writeImage(in imageInput, out string) (string, error) {
	platforms := make([]string, 0, len(in.Binaries))
	for platform := range in.Binaries {
		platforms = append(platforms, platform)
	}
	if len(platforms) == 0 || out == "" {
		return "", fmt.Errorf("an image needs a binary and the name of its file")
	}
	sort.Strings(platforms)
	common, err := commonLayer(in)
	if err != nil {
		return "", err
	}
	index := mutate.IndexMediaType(v1.ImageIndex(empty.Index), types.OCIImageIndex)
	var listed []dockerImage
	for _, platform := range platforms {
		image, err := platformImage(in, platform, common)
		if err != nil {
			return "", err
		}
		system, architecture, _ := strings.Cut(platform, "/")
		entry, err := dockerEntry(image, in.Name, architecture)
		if err != nil {
			return "", fmt.Errorf("cannot list the image of %s for Docker: %w", platform, err)
		}
		listed = append(listed, entry)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: system, Architecture: architecture}},
		})
	}
	index, _ = mutate.Annotations(index, in.annotations()).(v1.ImageIndex)
	digest, err := index.Digest()
	if err != nil {
		return "", fmt.Errorf("cannot create the index of the image: %w", err)
	}

	folder, err := os.MkdirTemp("", "masthead-image-")
	if err != nil {
		return "", fmt.Errorf("cannot create a folder for the image: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return "", fmt.Errorf("cannot write the image: %w", err)
	}
	// Both annotations: containerd names the image by the first one, OCI's tools by the second.
	_, tag, _ := strings.Cut(filepath.Base(in.Name), ":")
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"io.containerd.image.name": in.Name, "org.opencontainers.image.ref.name": tag,
	})); err != nil {
		return "", fmt.Errorf("cannot write the image: %w", err)
	}
	if err := writeDockerList(folder, listed); err != nil {
		return "", err
	}
	return digest.String(), writeTar(folder, in.Created, out)
}

// annotations record the origin of the image (https://github.com/opencontainers/image-spec/blob/main/annotations.md).
func (in imageInput) annotations() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "masthead",
		"org.opencontainers.image.description": "One controller manager for a fleet of Kubernetes clusters",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.source":      "https://github.com/masthead-dev/masthead",
		"org.opencontainers.image.version":     in.Version,
		"org.opencontainers.image.revision":    in.Revision,
		"org.opencontainers.image.created":     in.Created.Format(time.RFC3339),
	}
}

// platformImage is the image of one platform: a layer that all platforms share, and the manager.
func platformImage(in imageInput, platform string, common v1.Layer) (v1.Image, error) {
	binary, err := binaryLayer(in.Binaries[platform], in.Created)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image,
		mutate.Addendum{Layer: common, History: v1.History{Created: v1.Time{Time: in.Created}, CreatedBy: "roots, user, licences"}},
		mutate.Addendum{Layer: binary, History: v1.History{Created: v1.Time{Time: in.Created}, CreatedBy: "manager"}},
	)
	if err != nil {
		return nil, fmt.Errorf("cannot add the layers of %s: %w", platform, err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration of %s: %w", platform, err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, _ = strings.Cut(platform, "/")
	config.Created = v1.Time{Time: in.Created}
	config.Config = v1.Config{
		User:       fmt.Sprintf("%d:%d", userID, userID),
		WorkingDir: "/",
		Entrypoint: []string{"/manager"},
		Env:        []string{"PATH=/", "SSL_CERT_FILE=" + rootsPath},
		Labels:     in.annotations(),
	}
	return mutate.ConfigFile(image, config)
}
