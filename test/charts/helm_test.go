// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// namespace is the namespace of Masthead in the manifests.
const namespace = "masthead-system"

// helmBinary builds Helm, unless it has been built already, and returns its path.
var helmBinary = sync.OnceValues(func() (string, error) {
	tool := exec.Command(filepath.Join(testenv.Root(), "hack", "tool.sh"), "helm")
	tool.Stderr = os.Stderr
	out, err := tool.Output()
	return strings.TrimSpace(string(out)), err
})

// helm is Helm with its own home, and perhaps its own cluster.
type helm struct {
	env []string
}

func newHelm(t *testing.T, kubeconfig string) helm {
	t.Helper()
	home := t.TempDir()
	return helm{env: append(os.Environ(),
		"KUBECONFIG="+kubeconfig,
		"HELM_CACHE_HOME="+filepath.Join(home, "cache"),
		"HELM_CONFIG_HOME="+filepath.Join(home, "config"),
		"HELM_DATA_HOME="+filepath.Join(home, "data"),
	)}
}

// run runs Helm in the root of the repository. The error holds what it printed to standard error.
func (h helm) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	binary, err := helmBinary()
	if err != nil {
		t.Fatalf("cannot build Helm: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), binary, args...)
	var out, problems bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = testenv.Root(), h.env, &out, &problems
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("helm %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(problems.String()))
	}
	return out.String(), nil
}

func (h helm) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := h.run(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// template renders a chart without a cluster.
func (h helm) template(t *testing.T, chart string, args ...string) objects {
	t.Helper()
	text := h.must(t, append([]string{"template", "masthead", filepath.Join("charts", chart), "--namespace", namespace}, args...)...)
	return parse(t, "charts/"+chart, text)
}

// kustomize renders a folder of the repository.
func kustomize(t *testing.T, folder string) objects {
	t.Helper()
	bin := os.Getenv(testenv.BinEnv)
	if bin == "" {
		bin = filepath.Join(testenv.Root(), "bin", "controlplane")
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "kubectl"), "kustomize", filepath.Join(testenv.Root(), folder))
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("kubectl kustomize %s: %v: %s", folder, err, exit.Stderr)
		}
		t.Fatalf("cannot run kubectl, which `make controlplane` builds: %v", err)
	}
	return parse(t, folder, string(out))
}

// files reads manifests of the repository.
func files(t *testing.T, patterns ...string) objects {
	t.Helper()
	var lists []objects
	for _, pattern := range patterns {
		paths, err := filepath.Glob(filepath.Join(testenv.Root(), pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no files match %s: %v", pattern, err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(filepath.Clean(path))
			if err != nil {
				t.Fatal(err)
			}
			lists = append(lists, parse(t, path, string(data)))
		}
	}
	return merge(t, lists...)
}

// objects are objects by what identifies them: apiVersion, kind, namespace and name.
type objects map[string]map[string]any

// parse reads YAML documents. It leaves out what is for kustomize, and the Namespace, which Helm creates itself.
func parse(t *testing.T, source, text string) objects {
	t.Helper()
	list := objects{}
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		u := &unstructured.Unstructured{}
		if err := decoder.Decode(&u.Object); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		if len(u.Object) == 0 || u.GetKind() == "Kustomization" || u.GetKind() == "Namespace" {
			continue
		}
		name := fmt.Sprintf("%s %s %s/%s", u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName())
		if list[name] != nil {
			t.Errorf("%s has %s twice", source, name)
		}
		list[name] = u.Object
	}
}

func merge(t *testing.T, lists ...objects) objects {
	t.Helper()
	all := objects{}
	for _, list := range lists {
		for name, object := range list {
			if all[name] != nil {
				t.Errorf("%s is there twice", name)
			}
			all[name] = object
		}
	}
	return all
}

// write writes a file of values and returns its path.
func write(t *testing.T, values string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(path, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// texts are the contents of files of the repository, in the order of their paths.
func texts(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(testenv.Root(), pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files match %s: %v", pattern, err)
	}
	var list []string
	for _, path := range paths {
		data, err := os.ReadFile(filepath.Clean(path))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(data))
	}
	return list
}
