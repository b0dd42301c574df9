// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	goname "github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// input is an image of two platforms whose managers are a few bytes.
func input(t *testing.T) imageInput {
	t.Helper()
	folder := t.TempDir()
	in := imageInput{
		Binaries: binaries{}, Name: "registry.example/masthead:v1.2.3", Version: "v1.2.3", Revision: "abc",
		Licenses: filepath.Join(folder, "licenses"), Created: time.Unix(1_700_000_000, 0).UTC(),
	}
	for _, architecture := range []string{"amd64", "arm64"} {
		path := filepath.Join(folder, architecture)
		if err := os.WriteFile(path, []byte("manager for "+architecture), 0o700); err != nil {
			t.Fatal(err)
		}
		in.Binaries["linux/"+architecture] = path
	}
	if err := copyFile(in.Binaries["linux/amd64"], filepath.Join(in.Licenses, "example.com", "LICENSE")); err != nil {
		t.Fatal(err)
	}
	return in
}

func TestImageIsReproducible(t *testing.T) {
	in := input(t)
	var archives [2][]byte
	var digests [2]string
	for i := range archives {
		out := filepath.Join(t.TempDir(), "masthead.tar")
		digest, err := writeImage(in, out)
		if err != nil {
			t.Fatal(err)
		}
		if archives[i], err = os.ReadFile(out); err != nil {
			t.Fatal(err)
		}
		digests[i] = digest
	}
	if digests[0] != digests[1] || !bytes.Equal(archives[0], archives[1]) {
		t.Errorf("two builds of the same input differ: %s and %s", digests[0], digests[1])
	}
	if err := os.WriteFile(in.Binaries["linux/arm64"], []byte("another manager"), 0o600); err != nil {
		t.Fatal(err)
	}
	changed, err := writeImage(in, filepath.Join(t.TempDir(), "masthead.tar"))
	if err != nil {
		t.Fatal(err)
	}
	if changed == digests[0] {
		t.Error("another manager gives the same digest")
	}
}

func TestImageHoldsTheManagerAndNothingThatCouldRunBesideIt(t *testing.T) {
	in := input(t)
	archive := filepath.Join(t.TempDir(), "masthead.tar")
	if _, err := writeImage(in, archive); err != nil {
		t.Fatal(err)
	}
	for platform, binary := range in.Binaries {
		folder := filepath.Join(t.TempDir(), "root")
		if err := unpackImage(archive, platform, folder); err != nil {
			t.Fatal(err)
		}
		var files, executable []string
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			relative, _ := filepath.Rel(folder, path)
			files = append(files, relative)
			if info.Mode()&0o111 != 0 {
				executable = append(executable, relative)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"etc/group", "etc/passwd", "etc/ssl/certs/ca-certificates.crt", "licenses/example.com/LICENSE", "manager"}
		if diff := cmp.Diff(want, files); diff != "" {
			t.Errorf("files of %s: -want +got\n%s", platform, diff)
		}
		if !slices.Equal(executable, []string{"manager"}) {
			t.Errorf("%s can be run in %s", executable, platform)
		}
		got, _ := os.ReadFile(filepath.Join(folder, "manager"))
		wanted, _ := os.ReadFile(binary)
		if !bytes.Equal(got, wanted) {
			t.Errorf("the manager of %s is %q, not %q", platform, got, wanted)
		}
		roots, _ := os.ReadFile(filepath.Join(folder, "etc/ssl/certs/ca-certificates.crt"))
		if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(roots) || strings.Count(string(roots), "BEGIN CERTIFICATE") < 50 {
			t.Errorf("%s has no usable root certificates", platform)
		}
	}
	if err := unpackImage(archive, "linux/s390x", t.TempDir()); err == nil {
		t.Error("a platform that is not in the image was found")
	}
}

func TestImageIsValidAndRunsWithoutRights(t *testing.T) {
	in := input(t)
	archive := filepath.Join(t.TempDir(), "masthead.tar")
	if _, err := writeImage(in, archive); err != nil {
		t.Fatal(err)
	}
	index := openLayout(t, archive)
	if err := validate.Index(index); err != nil {
		t.Errorf("the image is not valid: %v", err)
	}
	image, err := imageOf(index, "linux/arm64")
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/manager"}) {
		t.Errorf("it runs %q as %q", config.Config.Entrypoint, config.Config.User)
	}
	if config.Architecture != "arm64" || config.OS != "linux" || !config.Created.Equal(in.Created) {
		t.Errorf("it says %s/%s of %s", config.OS, config.Architecture, config.Created)
	}
	if config.Config.Labels["org.opencontainers.image.version"] != "v1.2.3" {
		t.Errorf("its labels are %v", config.Config.Labels)
	}
}

func openLayout(t *testing.T, archive string) v1.ImageIndex {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "layout")
	in, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	if err := extract(in, folder); err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func TestArchiveThatLeadsOutOfItsFolderIsRefused(t *testing.T) {
	for _, name := range []string{"../escaped", "a/../../escaped", "/escaped"} {
		var archive bytes.Buffer
		out := tar.NewWriter(&archive)
		if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: 1}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(out, "x"); err != nil {
			t.Fatal(err)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		parent := t.TempDir()
		if err := extract(&archive, filepath.Join(parent, "folder")); err == nil {
			t.Errorf("%q was unpacked", name)
		}
		if _, err := os.Stat(filepath.Join(parent, "escaped")); err == nil {
			t.Errorf("%q was written out of the folder", name)
		}
	}
}

// Docker reports "no such file or directory" for an archive without a list for Docker, unless it keeps images in
// containerd.
func TestImageIsListedForDocker(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "masthead.tar")
	if _, err := writeImage(input(t), archive); err != nil {
		t.Fatal(err)
	}
	images := map[string]v1.Image{}
	for _, name := range []string{"registry.example/masthead:v1.2.3", "registry.example/masthead:v1.2.3-arm64"} {
		tag, err := goname.NewTag(name)
		if err != nil {
			t.Fatal(err)
		}
		// ImageFromPath reads an archive as Docker does.
		if images[name], err = tarball.ImageFromPath(archive, &tag); err != nil {
			t.Fatal(err)
		}
		if err := validate.Image(images[name]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		config, err := images[name].ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if wantsARM := strings.HasSuffix(name, "-arm64"); wantsARM != (config.Architecture == "arm64") {
			t.Errorf("%s is for %s", name, config.Architecture)
		}
	}
}
