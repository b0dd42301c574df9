// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testenv starts one real API server, with its etcd, for the tests of one package.
//
// It guarantees that a test which needs an API server either gets a real one or fails with a message that says how to
// build it: nothing is skipped, because a skipped test looks like one that passed. API servers end with the tests,
// regardless of how those end. Nothing is downloaded; the programs are those that `make controlplane` builds, and the
// CRDs of others come out of the Go modules that define them.
package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// BinEnv and AssetsEnv name the folder with the control-plane programs, in this order. Without either it is
// bin/controlplane at the root of the repository.
const (
	BinEnv    = "MASTHEAD_CONTROLPLANE_BIN"
	AssetsEnv = "KUBEBUILDER_ASSETS"
)

// attachEnv is the variable by which envtest shows all that the programs print.
const attachEnv = "KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT"

// Patience is how long a control plane may take to start, to serve its CRDs and to stop, and how long a test waits for
// a condition. It is long, for a machine that is busy with other tests: one kubectl took a minute there. No test
// asserts speed with it.
const Patience = 5 * time.Minute

// Root is the root of the repository. A program that was built with -trimpath does not know where its source was, and
// looks at and above the working folder, which is that of the package in a test.
func Root() string {
	if _, file, _, _ := runtime.Caller(0); filepath.IsAbs(file) {
		return filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(file))))
	}
	working, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for folder := working; folder != filepath.Dir(folder); folder = filepath.Dir(folder) {
		content, err := os.ReadFile(filepath.Join(folder, "go.mod"))
		if err == nil && strings.HasPrefix(string(content), "module github.com/masthead-dev/masthead\n") {
			return folder
		}
	}
	panic("cannot find the repository at or above " + working)
}

// CRDs are the CRDs of Masthead itself.
func CRDs() string {
	return filepath.Join(Root(), "config", "crd", "bases")
}

// ModuleCRDs is a folder of a Go module that the repository requires.
func ModuleCRDs(ctx context.Context, module, folder string) (string, error) {
	return PinnedCRDs(ctx, ".", module, folder)
}

// controllers is the folder that pins Crossplane and Cluster API.
var controllers = filepath.Join("hack", "controlplane", "controllers")

// CrossplaneCRDs is the folder with the CRDs of the Crossplane that the control planes run.
func CrossplaneCRDs(ctx context.Context) (string, error) {
	return PinnedCRDs(ctx, controllers, "github.com/crossplane/crossplane/v2", filepath.Join("cluster", "crds"))
}

// ClusterAPICRDs is the same of Cluster API.
func ClusterAPICRDs(ctx context.Context) (string, error) {
	return PinnedCRDs(ctx, controllers, "sigs.k8s.io/cluster-api", filepath.Join("core", "config", "crd", "bases"))
}

// PinnedCRDs is a folder of a Go module that a go.mod in a folder of the repository requires. The go command downloads
// the module when it is not on this machine.
func PinnedCRDs(ctx context.Context, pin, module, folder string) (string, error) {
	pin = filepath.Join(Root(), pin)
	found, err := goCommand(ctx, pin, "list", "-m", "-f", "{{.Dir}}", module)
	if err == nil && found == "" {
		if _, err = goCommand(ctx, pin, "mod", "download", module); err == nil {
			found, err = goCommand(ctx, pin, "list", "-m", "-f", "{{.Dir}}", module)
		}
	}
	if err == nil && found == "" {
		err = errors.New("the go command does not say where it is")
	}
	if err != nil {
		return "", fmt.Errorf("cannot find the Go module %q: %w", module, err)
	}
	return filepath.Join(found, folder), nil
}

func goCommand(ctx context.Context, folder string, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", arguments...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return "", fmt.Errorf("go %s: %w", strings.Join(arguments, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// New returns an environment, not yet started, whose API server serves the CRDs in the given files and folders.
func New(crds ...string) (*envtest.Environment, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	if err := endWithTests(); err != nil {
		return nil, fmt.Errorf("cannot ensure that API servers end with the tests: %w", err)
	}
	env := &envtest.Environment{
		BinaryAssetsDirectory: bin,
		CRDDirectoryPaths:     crds,
		ErrorIfCRDPathMissing: true,
		CRDInstallOptions:     envtest.CRDInstallOptions{MaxTime: Patience},

		ControlPlaneStartTimeout: Patience,
		ControlPlaneStopTimeout:  Patience,
	}
	if os.Getenv(attachEnv) != "true" {
		env.ControlPlane.GetAPIServer().Err = &lastWords{program: "kube-apiserver", to: os.Stderr}
		env.ControlPlane.Etcd = &envtest.Etcd{Err: &lastWords{program: "etcd", to: os.Stderr}}
	}
	return env, nil
}

// Start starts an environment. Envtest allows an API server five seconds for its namespace "default", of which it says
// that it does not take longer; on a busy machine it does.
func Start(env *envtest.Environment) (*rest.Config, error) {
	existing := env.UseExistingCluster
	defer func() { env.UseExistingCluster = existing }()
	config, err := env.Start()
	for begun := time.Now(); env.Config != nil && wait.Interrupted(err) && time.Since(begun) < Patience; {
		env.UseExistingCluster = new(true)
		config, err = env.Start()
	}
	return config, err //nolint:wrapcheck // Envtest says what it did.
}

func binaries() (string, error) {
	bin := os.Getenv(BinEnv)
	if bin == "" {
		bin = os.Getenv(AssetsEnv)
	}
	if bin == "" {
		bin = filepath.Join(Root(), "bin", "controlplane")
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return "", fmt.Errorf("this test needs a real API server and there is no %s: run `make controlplane`, or set %s "+
				"to a folder that has etcd, kube-apiserver and kubectl: %w", name, BinEnv, err)
		}
	}
	return bin, nil
}
