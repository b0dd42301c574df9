// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// modulePath is the path of the module that this package belongs to.
const modulePath = "github.com/masthead-dev/masthead"

// binDirVariables are the names of the environment variables that can hold the folder of the programs, in the order in
// which they are checked.
var binDirVariables = []string{"MASTHEAD_CONTROLPLANE_BIN", "KUBEBUILDER_ASSETS"}

// moduleFiles are files that come with the source of a module that the repository pins. They are taken from there, not
// copied into the repository, so that they always belong to the version that runs.
type moduleFiles struct {
	pin    string // folder of the go.mod that pins the module, relative to the repository
	module string
	folder string // in the module
	files  []string
}

var (
	crossplaneCRDs = moduleFiles{
		pin: "hack/controlplane/controllers", module: "github.com/crossplane/crossplane/v2", folder: "cluster/crds",
	}
	clusterAPICRDs = moduleFiles{
		pin: "hack/controlplane/controllers", module: "sigs.k8s.io/cluster-api", folder: "core/config/crd/bases",
	}
	inventoryCRDs = moduleFiles{
		pin: ".", module: "sigs.k8s.io/cluster-inventory-api", folder: "config/crd/bases",
		files: []string{"multicluster.x-k8s.io_clusterprofiles.yaml"},
	}
	kwokStages = moduleFiles{
		pin: "hack/controlplane/kubernetes", module: "sigs.k8s.io/kwok", folder: "kustomize/stage",
		files: []string{"node/fast/node-initialize.yaml", "pod/fast/pod-ready.yaml", "pod/fast/pod-complete.yaml", "pod/fast/pod-delete.yaml"},
	}
)

// find returns the paths of the files. The go command knows where modules are, and downloads the module if it is
// missing.
func (m moduleFiles) find(ctx context.Context, repository string) ([]string, error) {
	pin := filepath.Join(repository, m.pin)
	folder, err := goCommand(ctx, pin, "list", "-m", "-f", "{{.Dir}}", m.module)
	if err == nil && folder == "" {
		// The module is named in go.mod, but its source is not on this machine: what was built from it came from a build
		// cache.
		if _, err = goCommand(ctx, pin, "mod", "download", m.module); err == nil {
			folder, err = goCommand(ctx, pin, "list", "-m", "-f", "{{.Dir}}", m.module)
		}
	}
	if err == nil && folder == "" {
		err = errors.New("the go command does not say where it is")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find the source of module %s, pinned in %s/go.mod: %w", m.module, m.pin, err)
	}
	folder = filepath.Join(folder, filepath.FromSlash(m.folder))
	if len(m.files) == 0 {
		return yamlFiles(folder)
	}
	paths := make([]string, 0, len(m.files))
	for _, file := range m.files {
		paths = append(paths, filepath.Join(folder, filepath.FromSlash(file)))
	}
	return paths, nil
}

func goCommand(ctx context.Context, folder string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = folder
	command.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(output)), nil
}

// Repository returns the root of the repository: the folder, at or above the working folder, the program's folder or
// the source of this package, that holds the module's go.mod.
func Repository() (string, error) {
	var starts []string
	if folder, err := os.Getwd(); err == nil {
		starts = append(starts, folder)
	}
	if program, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(program))
	}
	if _, source, _, found := runtime.Caller(0); found {
		starts = append(starts, filepath.Dir(source))
	}
	for _, start := range starts {
		for folder := start; ; folder = filepath.Dir(folder) {
			content, err := os.ReadFile(filepath.Join(folder, "go.mod"))
			if err == nil && strings.HasPrefix(string(content), "module "+modulePath+"\n") {
				return folder, nil
			}
			if folder == filepath.Dir(folder) {
				break
			}
		}
	}
	return "", fmt.Errorf("cannot find the repository of %s at or above %s", modulePath, strings.Join(starts, " or "))
}

// findBinDir returns the folder of the programs and checks that it contains the given ones.
func findBinDir(wanted, repository string, needed []string) (string, error) {
	folder := wanted
	for _, variable := range binDirVariables {
		if folder == "" {
			folder = os.Getenv(variable)
		}
	}
	if folder == "" {
		folder = filepath.Join(repository, "bin", "controlplane")
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", fmt.Errorf("cannot find the control-plane programs: %w", err)
	}
	var missing []string
	for _, program := range needed {
		if _, err := os.Stat(filepath.Join(folder, program)); err != nil {
			missing = append(missing, program)
		}
	}
	if len(missing) > 0 {
		return "", fmt.Errorf("%s not found in %s: build the control-plane programs with hack/build-controlplane.sh "+
			"(the first time takes about a quarter of an hour), or set %s to the folder that has them",
			strings.Join(missing, ", "), folder, binDirVariables[0])
	}
	return folder, nil
}
