// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"fmt"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Run runs the tests of a package with one API server that serves some CRDs, and returns the exit code for TestMain.
// use gets a client for the types that add registers.
func Run(m *testing.M, add func(*runtime.Scheme) error, use func(client.Client), crds ...string) int {
	env, err := New(crds...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Also stops what a failed start has left.
	defer func() { _ = env.Stop() }()
	cfg, err := Start(env)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot start the API server:", err)
		return 1
	}
	scheme := runtime.NewScheme()
	if err := add(scheme); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	use(c)
	return m.Run()
}
