// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
)

const (
	apiVersion = "client.authentication.k8s.io/v1"
	answerA    = `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"a"}}`
)

// newPlugins returns a plugin "a" for the namespace fleet, which is a script for a shell without a PATH.
func newPlugins(script string, change ...func(*Plugins)) *Plugins {
	p := &Plugins{
		providers: []access.Provider{{Name: "a", ExecConfig: &clientcmdapi.ExecConfig{
			APIVersion: apiVersion, Command: "/bin/sh", Args: []string{"-c", script, "sh", "operator"},
			Env: []clientcmdapi.ExecEnvVar{{Name: "REGION", Value: "x"}}, ProvideClusterInfo: true,
		}}},
		places: map[string]places{"fleet": newPlaces()}, limit: 20 * time.Second,
	}
	for _, fn := range change {
		fn(p)
	}
	return p
}

func run(
	t *testing.T, p *Plugins, c *clientauthenticationv1.Cluster,
) (*clientauthenticationv1.ExecCredentialStatus, error) {
	t.Helper()
	if c == nil {
		c = &clientauthenticationv1.Cluster{Server: "https://w1.example.org"}
	}
	return p.Run(t.Context(), "fleet", "a", c)
}

func TestRun(t *testing.T) {
	const expires = `,"expirationTimestamp":"2030-01-02T03:04:05Z"}}`
	for name, tc := range map[string]struct {
		reason, script string
		token, err     string
	}{
		"Token": {reason: "It is taken.", script: `echo '` + answerA + `'`, token: "a"},
		"Expires": {
			reason: "So is its end.", script: `echo '` + strings.Replace(answerA, "}}", expires, 1) + `'`, token: "a",
		},
		"Stderr": {reason: "It says more.", script: `echo secret >&2; echo '` + answerA + `'`, token: "a"},
		"Fails": {
			reason: "Its end is said, its words are not.",
			script: `echo secret >&2; echo secret; exit 3`, err: "it ended with exit status 3",
		},
		"Killed": {reason: "It is killed.", script: `kill -9 $$`, err: "it ended with signal: killed"},
		"Silent": {reason: "It says nothing.", script: `:`, err: "not an ExecCredential"},
		"NoJSON": {reason: "An answer is not repeated.", script: `echo secret`, err: "not an ExecCredential"},
		"OtherKind": {
			reason: "It is another kind.",
			script: `echo '{"kind":"secret","apiVersion":"` + apiVersion + `","status":{"token":"a"}}'`,
			err:    "not an ExecCredential",
		},
		"Beta": {
			reason: "It is of another version.", err: "not an ExecCredential",
			script: `echo '` + strings.Replace(answerA, "/v1", "/v1beta1", 1) + `'`,
		},
		"NoStatus": {
			reason: "It has no credentials.",
			script: `echo '{"kind":"ExecCredential","apiVersion":"` + apiVersion + `"}'`, err: "with a status",
		},
		"Empty": {
			reason: "Nor has it here.",
			script: `echo '{"kind":"ExecCredential","apiVersion":"` + apiVersion + `","status":{}}'`, err: "neither",
		},
		"Endless": {
			reason: "It writes for ever.",
			script: `while :; do echo secretsecretsecretsecretsecretsecret; done`, err: "larger than",
		},
		"EndlessError": {
			reason: "That is dropped.", token: "a",
			script: `i=0; while [ $i -lt 20000 ]; do echo secretsecretsecretsecretsecretsecret >&2; i=$((i+1)); done; echo '` + answerA + `'`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := run(t, newPlugins(tc.script), nil)
			switch {
			case tc.err != "":
				if err == nil || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "secret") {
					t.Errorf("%s\nwant an error with %q and nothing that it writes, got %v", tc.reason, tc.err, err)
				}
			case err != nil:
				t.Errorf("%s\n%v", tc.reason, err)
			case got.Token != tc.token || name == "Expires" && got.ExpirationTimestamp.Year() != 2030:
				t.Errorf("%s\ngot %+v", tc.reason, got)
			}
		})
	}
}

// TestRunOnlyForNamedNamespaces is the consent of the operator.
func TestRunOnlyForNamedNamespaces(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	p := newPlugins(`echo >` + ran)
	for _, at := range [][2]string{{"team", "a"}, {"", "a"}, {"fleet", "b"}} {
		if _, err := p.Run(t.Context(), at[0], at[1], nil); err == nil {
			t.Errorf("want an error for %v", at)
		}
	}
	if _, err := os.Stat(ran); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a plugin was run: %v", err)
	}
}

// TestPluginIsPassedTheClusterOnly has a plugin report all that it is passed, for a profile that tries to pass more.
func TestPluginIsPassedTheClusterOnly(t *testing.T) {
	t.Setenv("MANAGERS", "secret")
	out := filepath.Join(t.TempDir(), "out")
	script := `{ /usr/bin/env; echo "args=$#:$*"; /bin/pwd; /bin/cat; } >` + out + `; echo '` + answerA + `'`
	hostile := &clientauthenticationv1.Cluster{
		Server: "https://w1.example.org/$(touch /tmp/x);`id`\"'\n--flag", CertificateAuthorityData: []byte("ca"),
		Config: runtime.RawExtension{Raw: []byte(`{"x":"\u0000\nLD_PRELOAD=/tmp/x.so","args":["--y"]}`)},
	}
	if _, err := run(t, newPlugins(script), hostile); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		got[name] = value
	}
	info := got["KUBERNETES_EXEC_INFO"]
	for _, name := range []string{"KUBERNETES_EXEC_INFO", "_", "SHLVL", "OLDPWD"} {
		delete(got, name)
	}
	want := map[string]string{"REGION": "x", "args": "1:operator", "PWD": "/", "/": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want the operator's arguments and variables alone (-want +got):\n%s", diff)
	}
	in := &clientauthenticationv1.ExecCredential{}
	if err := json.Unmarshal([]byte(info), in); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(hostile, in.Spec.Cluster); diff != "" || in.APIVersion != apiVersion || in.Spec.Interactive {
		t.Errorf("want the cluster in KUBERNETES_EXEC_INFO (-want +got):\n%s%+v", diff, in)
	}

	p := newPlugins(script, func(p *Plugins) { p.providers[0].ExecConfig.ProvideClusterInfo = false })
	if _, err := run(t, p, hostile); err != nil {
		t.Fatal(err)
	}
	if data, err = os.ReadFile(out); err != nil || strings.Contains(string(data), "example.org") {
		t.Errorf("want no cluster that the operator does not provide, got %s, %v", data, err)
	}
	large := &clientauthenticationv1.Cluster{Server: strings.Repeat("x", 1<<20)}
	if _, err := run(t, newPlugins(script), large); err == nil {
		t.Error("want an error for more than the system passes")
	}
}

// TestRunEndsChildren has plugins that leave processes, in time and too late, and does not expect a zombie either: the
// test adopts orphans, as the first process of a container does.
func TestRunEndsChildren(t *testing.T) {
	const subreaper = 36 // PR_SET_CHILD_SUBREAPER
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, subreaper, 1, 0); errno != 0 {
		t.Skipf("cannot adopt orphans: %v", errno)
	}
	t.Cleanup(func() { _, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, subreaper, 0, 0) })
	for name, tc := range map[string]struct{ rest, err string }{
		"InTime":  {rest: `echo '` + answerA + `'`},
		"TooLate": {rest: `wait`, err: "in time"},
		"Ignores": {rest: `trap '' TERM INT PIPE; while :; do :; done`, err: "in time"},
		"Large":   {rest: `while :; do echo secretsecretsecretsecret; done`, err: "larger than"},
		"Holds":   {rest: `/bin/sleep 1000 & echo '` + answerA + `'`, err: "holds its output"},
	} {
		t.Run(name, func(t *testing.T) {
			pids := filepath.Join(t.TempDir(), "pids")
			p := newPlugins(`echo $$ >`+pids+`; (/bin/sleep 1000 >/dev/null & echo $! >>`+pids+`; wait) >/dev/null &
				while [ "$(/usr/bin/wc -l <`+pids+`)" -lt 2 ]; do :; done; `+tc.rest,
				func(p *Plugins) {
					if tc.err == "in time" {
						p.limit = 4 * time.Second
					}
				})
			start := time.Now()
			_, err := run(t, p, nil)
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("want an error with %q, got %v", tc.err, err)
			}
			if took := time.Since(start); took > 15*time.Second {
				t.Errorf("it took %v", took)
			}
			data, err := os.ReadFile(pids)
			if err != nil {
				t.Fatal(err)
			}
			found := strings.Fields(string(data))
			if len(found) != 2 {
				t.Fatalf("want two processes, got %q", data)
			}
			for _, field := range found {
				pid, err := strconv.Atoi(field)
				if err != nil {
					t.Fatal(err)
				}
				if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
					t.Errorf("the process %d is left: %v", pid, err)
				}
			}
		})
	}
}

func TestPlaces(t *testing.T) { synctest.Test(t, testPlaces) }

func testPlaces(t *testing.T) {
	fleet, team := newPlaces(), newPlaces()
	var leave []func()
	for range maxRunning {
		l, err := fleet.enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, l)
	}
	if _, err := team.enter(t.Context()); err != nil {
		t.Errorf("want a place for another namespace, got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	entered := make(chan error)
	enter := func(ctx context.Context) {
		_, err := fleet.enter(ctx)
		entered <- err
	}
	for range maxWaiting - 1 {
		go enter(ctx)
	}
	go enter(t.Context())
	synctest.Wait()
	if _, err := fleet.enter(t.Context()); err == nil {
		t.Error("want no place when enough wait")
	}
	cancel()
	for range maxWaiting - 1 {
		if err := <-entered; err == nil {
			t.Error("want no place after the end of the context")
		}
	}
	leave[0]()
	if err := <-entered; err != nil {
		t.Errorf("want the place that was left, got %v", err)
	}
	if len(fleet.waiting) != 0 || len(fleet.running) != maxRunning {
		t.Errorf("%d wait and %d run", len(fleet.waiting), len(fleet.running))
	}
}
