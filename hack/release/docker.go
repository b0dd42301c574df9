// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// dockerImage is an entry of manifest.json, which `docker load` reads. Docker reads OCI's index only if it keeps images
// in containerd, which is not its default on every machine, and not at all before version 25. Programs that read the
// index do not read this.
type dockerImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// mainArchitecture is the architecture whose image has the plain name in Docker, in which a name stands for one
// platform.
const mainArchitecture = "amd64"

// dockerEntry lists the image of one platform with the blobs of the layout. The names of all architectures except the
// main one end in the architecture.
func dockerEntry(image v1.Image, name, architecture string) (dockerImage, error) {
	if architecture != mainArchitecture {
		name += "-" + architecture
	}
	config, err := image.ConfigName()
	if err != nil {
		return dockerImage{}, err
	}
	layers, err := image.Layers()
	if err != nil {
		return dockerImage{}, err
	}
	entry := dockerImage{Config: blob(config), RepoTags: []string{name}}
	for _, layer := range layers {
		digest, err := layer.Digest()
		if err != nil {
			return dockerImage{}, err
		}
		entry.Layers = append(entry.Layers, blob(digest))
	}
	return entry, nil
}

// blob is the path of the blob with a digest in a layout.
func blob(digest v1.Hash) string { return path.Join("blobs", digest.Algorithm, digest.Hex) }

func writeDockerList(folder string, images []dockerImage) error {
	list, err := json.Marshal(images)
	if err != nil {
		return fmt.Errorf("cannot list the images for Docker: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "manifest.json"), list, 0o600); err != nil {
		return fmt.Errorf("cannot write the list for Docker: %w", err)
	}
	return nil
}
