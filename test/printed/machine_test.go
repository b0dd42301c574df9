// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package printed

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// machine is the reader's machine: a folder that looks like a checkout, kubectl, the manager and clusters.
type machine struct {
	folder string
	bin    string

	// kubeconfigs are the kubeconfigs of the clusters' administrators, by the names in prompts.
	kubeconfigs map[string]string

	// admins are clients of the administrators of the API servers that start has started, by the names in prompts.
	admins map[string]client.Client

	// replace replaces addresses on the pages that are different here.
	replace *strings.Replacer

	// health is the address at which the manager reports its health.
	health string
}

// newMachine prepares a machine without clusters.
func newMachine(t *testing.T) *machine {
	t.Helper()
	folder, bin := t.TempDir(), t.TempDir()
	for _, name := range []string{"config", "charts"} {
		if err := os.Symlink(filepath.Join(testenv.Root(), name), filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	tools := os.Getenv(testenv.BinEnv)
	if tools == "" {
		tools = filepath.Join(testenv.Root(), "bin", "controlplane")
	}
	if err := os.Mkdir(filepath.Join(folder, "bin"), 0o750); err != nil {
		t.Fatal(err)
	}
	build(t, filepath.Join(folder, "bin", "manager"), "./cmd/manager")
	if err := os.Symlink(filepath.Join(tools, "kubectl"), filepath.Join(bin, "kubectl")); err != nil {
		t.Fatal(err)
	}
	// The reader has curl; the machine on which the tests run need not have it.
	if err := os.WriteFile(filepath.Join(bin, "curl"), []byte(curl), 0o700); err != nil {
		t.Fatal(err)
	}
	health := freeAddress(t)
	return &machine{
		folder: folder, bin: bin, kubeconfigs: map[string]string{}, admins: map[string]client.Client{}, health: health,
		replace: strings.NewReplacer("127.0.0.1:18081", health),
	}
}

// curl prints what is at the URL in the last of its arguments, which is of the form http://host:port/path.
const curl = `#!/usr/bin/env bash
set -euo pipefail
url=${*: -1}
rest=${url#http://} && address=${rest%%/*}
exec 3<>"/dev/tcp/${address%:*}/${address##*:}"
printf 'GET /%s HTTP/1.0\r\n\r\n' "${rest#*/}" >&3
sed $'1,/^\r$/d' <&3
`

// install puts tools of hack/tools on the path, under the names that the reader knows.
func (m *machine) install(t *testing.T, tools map[string]string) {
	t.Helper()
	for name, tool := range tools {
		cmd := exec.CommandContext(t.Context(), filepath.Join(testenv.Root(), "hack", "tool.sh"), tool)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("cannot build %s: %v", tool, err)
		}
		if err := os.Symlink(strings.TrimSpace(string(out)), filepath.Join(m.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// build builds a program of this repository as `make build` does, so that most of it is in the cache.
func build(t *testing.T, path, program string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", path, program)
	cmd.Dir, cmd.Env = testenv.Root(), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build %s: %v: %s", program, err, out)
	}
}

// start starts an API server that has nothing, and uses its administrator's kubeconfig for the prompts.
func (m *machine) start(t *testing.T, prompts ...string) {
	t.Helper()
	env, err := testenv.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Stop() }) // This also stops what a failed start has left.
	if _, err := testenv.Start(env); err != nil {
		t.Fatalf("cannot start the API server: %v", err)
	}
	admin, err := env.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := admin.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	c := controllertest.NewClient(t, admin.Config(), scheme.Scheme)
	for _, name := range prompts {
		m.kubeconfigs[name], m.admins[name] = path, c
	}
}

// run runs a command as a user who has a cluster's kubeconfig, the hub's if where is empty, and returns its standard
// output. The variables id, server and token, if the command sets them, are available to the next commands at the same
// prompt.
func (m *machine) run(t *testing.T, where, command string) (string, error) {
	t.Helper()
	if where == "" {
		where = "hub"
	}
	variables := filepath.Join(m.folder, "."+where)
	script := fmt.Sprintf("set -o pipefail; [[ ! -e %[1]s ]] || source %[1]s\n%[2]s\n{ rc=$?; declare -p id server token 2>/dev/null; } >%[1]s; exit $rc",
		variables, m.replace.Replace(command))
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	var out, problems bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = m.folder, &out, &problems
	cmd.Env = append(os.Environ(), "PATH="+m.bin+":"+os.Getenv("PATH"), "KUBECONFIG="+m.kubeconfigs[where], "HOME="+m.folder)
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%w: %s", err, problems.String())
	}
	return out.String(), nil
}

func (m *machine) must(t *testing.T, where, command string) string {
	t.Helper()
	out, err := m.run(t, where, command)
	if err != nil {
		t.Fatalf("%s$ %s\n%s%v", where, command, out, err)
	}
	return out
}

// follow runs the steps of blocks, and compares what they print.
func (m *machine) follow(t *testing.T, list ...block) {
	t.Helper()
	for _, b := range list {
		for _, s := range b.steps {
			out, err := m.run(t, s.where, s.command)
			if err != nil {
				t.Fatalf("%s: %s$ %s\n%s%v", b.place, s.where, s.command, out, err)
			}
			if !matches(s.prints, out) {
				t.Errorf("%s: %s$ %s\nThe page says:\n%s\nIt prints:\n%s", b.place, s.where, s.command, strings.Join(s.prints, "\n"), out)
			}
		}
	}
}

// await runs a command until its output contains the wanted text.
func (m *machine) await(t *testing.T, where, command, want string) {
	t.Helper()
	m.awaitWhile(t, where, command, want, func() error { return nil })
}

// awaitRemoval is await for a command that shows definitions which are being deleted.
func (m *machine) awaitRemoval(t *testing.T, where, command, want string) {
	t.Helper()
	m.awaitWhile(t, where, command, want, func() error { return testenv.ReleaseDefinitions(t.Context(), m.admins[where]) })
}

func (m *machine) awaitWhile(t *testing.T, where, command, want string, between func() error) {
	t.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, 3*time.Minute, true, func(context.Context) (bool, error) {
		out, err := m.run(t, where, command)
		last = fmt.Sprint(out, err)
		return err == nil && strings.Contains(out, want), between()
	})
	if err != nil {
		t.Fatalf("%s$ %s\nwant %q in what it prints (%v), last:\n%s", where, command, want, err, last)
	}
}

// launch starts what the Deployment would start: the manager with the Deployment's arguments, as its ServiceAccount.
// The added flags are for clusters on this machine.
func (m *machine) launch(t *testing.T) (stop func()) {
	t.Helper()
	token := m.must(t, "hub", "kubectl create token masthead --namespace masthead-system --duration 24h")
	args := strings.Fields(m.must(t, "hub", `kubectl get deployment masthead --namespace masthead-system -o jsonpath='{.spec.template.spec.containers[0].args[*]}'`))
	m.must(t, "hub", `kubectl config view --raw >hub.kubeconfig && kubectl config --kubeconfig hub.kubeconfig set-credentials admin-out --token "`+
		strings.TrimSpace(token)+`" && kubectl config --kubeconfig hub.kubeconfig set-context --current --user admin-out`)
	cmd := exec.Command(filepath.Join(m.folder, "bin", "manager"), append(args, // A signal stops it.
		"--kubeconfig", filepath.Join(m.folder, "hub.kubeconfig"), "--health-bind-address", m.health, "--metrics-bind-address", "0",
		"--allow-loopback-endpoints")...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the manager:\n%s", log.String())
		}
	}
	t.Cleanup(stop)
	return stop
}

// freeAddress returns an address of this machine at which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
