// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// maxAnnotations is the maximum total size of an object's annotations. `kubectl apply` keeps the whole object in one.
const maxAnnotations = 256 << 10

func TestDefinitionFitsIntoAnAnnotation(t *testing.T) {
	data, err := os.ReadFile(definitionFile())
	if err != nil {
		t.Fatal(err)
	}
	var crd object
	if err := yaml.Unmarshal(data, &crd); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	if len(encoded) >= maxAnnotations-1024 {
		t.Errorf("the definition has %d bytes as JSON, which `kubectl apply` cannot keep in an annotation", len(encoded))
	}
}

// TestDefinitionInstallsWithEveryClient installs the definition in a cluster that has none, as people do.
func TestDefinitionInstallsWithEveryClient(t *testing.T) {
	env, err := testenv.New()
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := testenv.Start(env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Stop() })
	admin, err := env.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := admin.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	kubectl := func(ctx context.Context, args ...string) error {
		args = append([]string{"--kubeconfig", file, "--cache-dir", cache}, args...)
		out, err := exec.CommandContext(ctx, filepath.Join(env.BinaryAssetsDirectory, "kubectl"), args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("kubectl %v: %w\n%s", args[4:], err, out)
		}
		return nil
	}
	for name, apply := range map[string][]string{
		"ClientSide": {"apply", "-f", definitionFile()},
		"ServerSide": {"apply", "--server-side", "-f", definitionFile()},
		"Create":     {"create", "-f", definitionFile()},
	} {
		t.Run(name, func(t *testing.T) {
			if err := kubectl(t.Context(), apply...); err != nil {
				t.Fatal(err)
			}
			var last error
			err := testenv.Poll(t.Context(), testenv.Patience, func(ctx context.Context) (bool, error) {
				last = kubectl(ctx, "get", "applications", "--all-namespaces")
				return last == nil, nil
			})
			if err != nil {
				t.Errorf("Applications are not served: %v", last)
			}
			if err := kubectl(t.Context(), "delete", "-f", definitionFile()); err != nil {
				t.Fatal(err)
			}
		})
	}
}
