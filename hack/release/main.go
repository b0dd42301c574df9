// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const usage = `usage: release COMMAND [flags]

  image     write an OCI image layout as a tar file
  unpack    write the files of one platform of such a tar file into a folder
  sbom      write the modules of a binary as SPDX 2.3
  licenses  write the licences of the modules of the binaries into a folder
`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	commands := map[string]func([]string) error{
		"image": runImage, "unpack": runUnpack, "sbom": runSBOM, "licenses": runLicenses,
	}
	command, ok := commands[args[0]]
	if !ok {
		return fmt.Errorf("no command is called %q\n%s", args[0], usage)
	}
	return command(args[1:])
}

// binaries are the values of a flag that names a binary for each platform, as linux/amd64=path.
type binaries map[string]string

func (b binaries) String() string { return fmt.Sprint(map[string]string(b)) }

func (b binaries) Set(value string) error {
	platform, path, ok := strings.Cut(value, "=")
	if !ok || strings.Count(platform, "/") != 1 || path == "" {
		return fmt.Errorf("%q is not of the form os/architecture=path", value)
	}
	b[platform] = path
	return nil
}

func runImage(args []string) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	in := imageInput{Binaries: binaries{}}
	flags.Var(in.Binaries, "binary", "os/architecture=path; once for each platform")
	flags.StringVar(&in.Name, "name", "", "the name of the image with its tag, kept as an annotation")
	flags.StringVar(&in.Version, "version", "", "the version of the manager")
	flags.StringVar(&in.Revision, "revision", "", "the commit that was built")
	flags.StringVar(&in.Licenses, "licenses", "", "the folder that the command licenses wrote")
	out := flags.String("out", "", "the tar file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	created, err := sourceDate(os.Getenv)
	if err != nil {
		return err
	}
	in.Created = created
	digest, err := writeImage(in, *out)
	if err != nil {
		return err
	}
	_, err = fmt.Println(digest)
	return err
}

func runUnpack(args []string) error {
	flags := flag.NewFlagSet("unpack", flag.ContinueOnError)
	image := flags.String("image", "", "the tar file of an image")
	platform := flags.String("platform", "linux/amd64", "which one of its platforms")
	out := flags.String("out", "", "the folder; it is made")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return unpackImage(*image, *platform, *out)
}

func runSBOM(args []string) error {
	flags := flag.NewFlagSet("sbom", flag.ContinueOnError)
	binary := flags.String("binary", "", "the binary whose modules are listed")
	version := flags.String("version", "", "the version of the manager")
	out := flags.String("out", "", "the file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	created, err := sourceDate(os.Getenv)
	if err != nil {
		return err
	}
	return writeSBOM(*binary, *version, created, *out)
}

func runLicenses(args []string) error {
	flags := flag.NewFlagSet("licenses", flag.ContinueOnError)
	in := binaries{}
	flags.Var(in, "binary", "os/architecture=path; once for each platform")
	out := flags.String("out", "", "the folder; it is replaced")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return writeLicenses(in, *out)
}

// sourceDate is the time stamp of everything in a release (https://reproducible-builds.org/specs/source-date-epoch/).
func sourceDate(env func(string) string) (time.Time, error) {
	seconds, err := strconv.ParseInt(env("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot read SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
