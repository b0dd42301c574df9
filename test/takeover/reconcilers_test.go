// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/internal/test/importertest"
)

// reconcilers is a program of hack/webhooks that reconciles with the provider's own code.
type reconcilers struct {
	in  io.Writer
	out *json.Decoder
}

// startReconcilers starts the program of a provider, or returns nil if make webhooks has built none.
func startReconcilers(t *testing.T, e emulator) *reconcilers {
	t.Helper()
	built, err := importertest.WebhookVersions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(built) == 0 {
		return nil
	}
	name := strings.ToLower(e.name)
	if built[name] != e.version {
		t.Fatalf("%s is of version %s, and the table of TestProviders names %s", name, built[name], e.version)
	}
	program, path := filepath.Join(os.Getenv(importertest.WebhooksEnv), name), filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "--reconcile", "--kubeconfig", path)
	// CAPA reads the Secrets of identities in its own namespace. A request that was refused is not repeated.
	command.Env = append(os.Environ(), "POD_NAMESPACE="+namespace, "AWS_MAX_ATTEMPTS=1")
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := command.Wait(); err != nil {
			t.Error(err)
		}
	})
	return &reconcilers{in: in, out: json.NewDecoder(out)}
}

// compare reconciles all objects, and fails unless the cloud is reached when the emulator's outcome says so: by each
// kind, except that deletions wait for one another. Pools are first, as control planes that fail are not ready.
func (r *reconcilers) compare(t *testing.T, e emulator, objects []*unstructured.Unstructured, emulated string) {
	t.Helper()
	if r == nil {
		return
	}
	var reached []string
	for _, object := range slices.Backward(objects) {
		requests := r.reconcile(t, object.GetKind(), object.GetName())
		if len(requests) == 0 && emulated == outcomeUpdated {
			t.Errorf("%s: the reconciler of %s does not reach the cloud", e.name, object.GetKind())
		}
		reached = append(reached, requests...)
	}
	if want := emulated == outcomeUpdated || emulated == outcomeDeleted; want != (len(reached) > 0) {
		t.Errorf("%s: emulated: %s, but its own reconcilers reached %v", e.name, emulated, reached)
	}
	for _, other := range e.others {
		if reached := r.reconcile(t, other, objects[0].GetName()); len(reached) > 0 {
			t.Errorf("%s: the reconciler of %s reached %v", e.name, other, reached)
		}
	}
}

// reconcile returns the requests to the cloud.
func (r *reconcilers) reconcile(t *testing.T, name, object string) []string {
	t.Helper()
	if _, err := fmt.Fprintln(r.in, name, namespace, object); err != nil {
		t.Fatal(err)
	}
	var outcome struct {
		Error            string
		Requests, Writes []string
	}
	if err := r.out.Decode(&outcome); err != nil {
		t.Fatalf("the reconciler of %s does not answer: %v", name, err)
	}
	t.Logf("%s: %+v", name, outcome)
	return outcome.Requests
}
