// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

func noEnv(string) string { return "" }

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason string
		file   string
		args   []string
		env    map[string]string
		modify func(*Options)
	}{
		"Nothing": {
			reason: "A manager without flags runs with its defaults.",
			modify: func(*Options) {},
		},
		"Flags": {
			reason: "Flags set options.",
			args:   []string{"--leader-elect", "--probe-interval=3s", "--metrics-secure=false", "--cluster-qps=7.5"},
			modify: func(o *Options) {
				o.LeaderElection.Enabled = true
				o.Connections.ProbeInterval.Duration = 3 * time.Second
				o.Metrics.Secure = false
				o.Connections.QPS = 7.5
			},
		},
		"File": {
			reason: "The file sets options, and leaves the defaults of what it does not name.",
			file:   "connections: {probeInterval: 3s, allowKubeconfigProxy: true}\nagent: {protectedNamespaces: [a, b]}\n",
			modify: func(o *Options) {
				o.Connections.ProbeInterval.Duration = 3 * time.Second
				o.Connections.AllowKubeconfigProxy = true
				o.Agent.ProtectedNamespaces = []string{"a", "b"}
			},
		},
		"Plugins": {
			reason: "The file says whose credentials programs provide.",
			file:   "sources: [clusterprofile]\nclusterProfiles: {accessConfig: /x.json, pluginNamespaces: [a]}\n",
			args:   []string{"--cluster-profile-plugin-namespaces=b,c"},
			modify: func(o *Options) {
				o.Sources = []string{"clusterprofile"}
				o.ClusterProfiles = ClusterProfileOptions{AccessConfig: "/x.json", PluginNamespaces: []string{"b", "c"}}
			},
		},
		"Applications": {
			reason: "What is done for Applications is limited by flags and the file alike.",
			file:   "applications: {workers: 5, metrics: PerApplication}\n",
			args:   []string{"--cluster-lists=2", "--application-workers=6"},
			modify: func(o *Options) {
				o.Connections.Lists = 2
				o.Applications = ApplicationOptions{Workers: 6, Metrics: metricsPerApplication, HealthLibrary: true}
			},
		},
		"Sources": {
			reason: "A hub without Cluster API says so.",
			args:   []string{"--sources=kubeconfig"},
			modify: func(o *Options) { o.Sources = []string{"kubeconfig"} },
		},
		"References": {
			reason: "The hub's own objects are looked after by a class that a flag or the file names.",
			file:   "references: {hubClass: other}\n",
			args:   []string{"--hub-references-class=hub"},
			modify: func(o *Options) { o.References.HubClass = "hub" },
		},
		"FlagsWin": {
			reason: "A flag wins over the file, wherever it stands and even if it says what the default is.",
			file:   "connections: {probeInterval: 3s, workers: 60}\nmetrics: {secure: false}\nagent: {protectedNamespaces: [a]}\n",
			args:   []string{"--probe-interval=10s", "--metrics-secure=true", "--protected-namespaces=b"},
			modify: func(o *Options) {
				o.Connections.Workers = 60
				o.Agent.ProtectedNamespaces = []string{"b"}
			},
		},
		"DeniedEndpoints": {
			reason: "Networks are denied by the file and by a flag.",
			file:   "connections: {deniedEndpointCIDRs: [192.0.2.0/24]}\n",
			args:   []string{"--denied-endpoint-cidrs=10.96.0.0/12,fd00:10::/32"},
			modify: func(o *Options) { o.Connections.DeniedEndpointCIDRs = []string{"10.96.0.0/12", "fd00:10::/32"} },
		},
		"NamespaceOfThePod": {
			reason: "In a Pod the namespace is known.",
			env:    map[string]string{"POD_NAMESPACE": "fleet"},
			modify: func(o *Options) { o.Namespace = "fleet" },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			args := tc.args
			if tc.file != "" {
				path := filepath.Join(t.TempDir(), "config.yaml")
				if err := os.WriteFile(path, []byte(tc.file), 0o600); err != nil {
					t.Fatal(err)
				}
				args = append(args, "--config", path)
			}
			got, err := parse(args, func(key string) string { return tc.env[key] }, &bytes.Buffer{})
			if err != nil {
				t.Fatalf("%s\nparse: %v", tc.reason, err)
			}
			want := defaultOptions(noEnv)
			tc.modify(&want)
			if diff := cmp.Diff(want, got.Options); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		file   string
		args   []string
		want   string
	}{
		"UnknownFlag": {
			reason: "A flag that does not exist is not ignored.",
			args:   []string{"--probe-intervall=3s"}, want: "unknown flag",
		},
		"UnknownField": {
			reason: "A field that the file misspells is not ignored.",
			file:   "connections: {probeIntervall: 3s}\n", want: `unknown field "probeIntervall"`,
		},
		"DuplicateField": {
			reason: "A file that says two things says nothing.",
			file:   "namespace: a\nnamespace: b\n", want: "already set in map",
		},
		"NoFile": {
			reason: "A file that is named must be there.",
			args:   []string{"--config", "/does/not/exist.yaml"}, want: "cannot read the config file",
		},
		"Arguments": {
			reason: "The manager takes no arguments; one is a flag without its dashes.",
			args:   []string{"leader-elect"}, want: "unexpected arguments",
		},
		"PprofForEverybody": {
			reason: "Profiles have no authentication.",
			args:   []string{"--pprof-bind-address=:6060"}, want: "not a loopback address",
		},
		"PprofOnAnotherAddress": {
			reason: "Nor may a name that could be anything stand for loopback.",
			args:   []string{"--pprof-bind-address=myhost:6060"}, want: "not a loopback address",
		},
		"UnknownSource": {
			reason: "A source that does not exist enrols nothing.",
			args:   []string{"--sources=capi,secrets"}, want: `sources: "secrets" is not one of capi, kubeconfig, clusterprofile`,
		},
		"NoSource": {
			reason: "A manager without clusters has nothing to do.",
			file:   "sources: []\n", want: "sources: at least one of capi, kubeconfig, clusterprofile is needed",
		},
		"PluginsForNoNamespace": {
			reason: "Plugins that are run for no profile are a mistake.",
			args:   []string{"--cluster-profile-access-config=/x"},
			want:   "cluster-profile-plugin-namespaces: each needs the other",
		},
		"PluginsWithoutTheSource": {
			reason: "Nor are they run without the source.",
			args:   []string{"--cluster-profile-access-config=/x", "--cluster-profile-plugin-namespaces=a"},
			want:   "cluster-profile-access-config: it is for the source clusterprofile",
		},
		"NoPluginsForANamespace": {
			reason: "So are namespaces without them.",
			args:   []string{"--cluster-profile-plugin-namespaces=a"}, want: "cluster-profile-access-config and",
		},
		"PluginsForAPattern": {
			reason: "No pattern consents.",
			args:   []string{"--cluster-profile-access-config=/x", "--cluster-profile-plugin-namespaces=*"},
			want:   `cluster-profile-plugin-namespaces: "*" is not the name of a namespace`,
		},
		"TooFewWorkers": {
			reason: "Dead clusters must leave room for live ones.",
			args:   []string{"--connection-workers=10"}, want: "connection-workers: must be at least 50",
		},
		"NoAnswers": {
			reason: "A limit of nothing would refuse every answer.",
			args:   []string{"--max-answer-mib=0"}, want: "max-answer-mib: must be at least 1",
		},
		"DeniedEndpoint": {
			reason: "What is meant to be denied must not be ignored.",
			args:   []string{"--denied-endpoint-cidrs=10.0.0.0/8,10.0.0.1"}, want: `denied-endpoint-cidrs: "10.0.0.1" is not a network in CIDR notation`,
		},
		"BackoffUpsideDown": {
			reason: "The longest wait is not shorter than the first.",
			args:   []string{"--backoff-base=10s", "--backoff-max=1s"}, want: "backoff-max: must not be shorter",
		},
		"LeaseUpsideDown": {
			reason: "A leader that renews for longer than the duration of its lease is one of two leaders.",
			args:   []string{"--leader-elect-lease-duration=5s"}, want: "leader-elect-lease-duration must be longer",
		},
		"RetryPeriodTooLong": {
			reason: "A retry is jittered, and must come before the deadline all the same.",
			args:   []string{"--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=9s"},
			want:   "leader-elect-renew-deadline must be longer than 1.2 times leader-elect-retry-period",
		},
		"ZeroTimeout": {
			reason: "No time-out at all would let a dead cluster hold a worker for ever.",
			args:   []string{"--request-timeout=0s"}, want: "request-timeout: must be longer than zero",
		},
		"LogLevel": {
			reason: "A level that does not exist is not info.",
			args:   []string{"--log-level=verbose"}, want: `log-level: "verbose" is not one of error, info, debug, trace`,
		},
		"LogFormat": {
			reason: "A format that does not exist is not JSON.",
			args:   []string{"--log-format=xml"}, want: `log-format: "xml" is not one of json, text`,
		},
		"Address": {
			reason: "A port alone is not an address.",
			args:   []string{"--metrics-bind-address=8443"}, want: `metrics-bind-address: "8443" is not an address`,
		},
		"Namespace": {
			reason: "The lease needs a namespace that can exist.",
			args:   []string{"--namespace=A_B"}, want: `namespace: "A_B" is not the name of a namespace`,
		},
		"ProtectedNamespace": {
			reason: "A pattern protects nothing.",
			args:   []string{"--protected-namespaces=infra-*"}, want: `protected-namespaces: "infra-*"`,
		},
		"ApplicationMetrics": {
			reason: "A switch that does not exist is not the default.",
			args:   []string{"--application-metrics=All"}, want: `application-metrics: "All" is not one of PerCluster, PerApplication`,
		},
		"NoLists": {
			reason: "Without a turn, no kind would ever be read.",
			args:   []string{"--cluster-lists=0", "--application-workers=0"},
			want:   "invalid options: [application-workers: must be at least 1, cluster-lists: must be at least 1]",
		},
		"EverythingAtOnce": {
			reason: "All mistakes are named, in a stable order and on one line.",
			args:   []string{"--cluster-burst=0", "--agent-workers=0", "--probe-failures=0", "--cluster-qps=0"},
			want: "invalid options: [agent-workers: must be at least 1, cluster-burst: must be at least 1, " +
				"cluster-qps: must be more than zero, probe-failures: must be at least 1]",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			args := tc.args
			if tc.file != "" {
				path := filepath.Join(t.TempDir(), "config.yaml")
				if err := os.WriteFile(path, []byte(tc.file), 0o600); err != nil {
					t.Fatal(err)
				}
				args = append(args, "--config", path)
			}
			_, err := parse(args, noEnv, &bytes.Buffer{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nwant an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestDefaultsAreValidAndCanBeAFile(t *testing.T) {
	want := defaultOptions(noEnv)
	if err := want.Validate(); err != nil {
		t.Errorf("The defaults must be valid: %v", err)
	}
	data, err := yaml.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Options
	if err := yaml.UnmarshalStrict(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Options must survive being written to a file: -want, +got:\n%s", diff)
	}
}

func TestHelpNamesEveryFlagOnce(t *testing.T) {
	var usage bytes.Buffer
	if _, err := parse([]string{"--help"}, noEnv, &usage); !errors.Is(err, pflag.ErrHelp) {
		t.Fatalf("want pflag.ErrHelp, got %v", err)
	}
	in, config := invocation{}, ""
	bind(&in, &config, &bytes.Buffer{}).VisitAll(func(f *pflag.Flag) {
		if text := usage.String(); !strings.Contains(text, " --"+f.Name+" ") && !strings.Contains(text, " --"+f.Name+"[=") {
			t.Errorf("--help does not name --%s", f.Name)
		}
		if f.Usage == "" {
			t.Errorf("--%s has no explanation", f.Name)
		}
	})
}

func TestRunWithoutAHub(t *testing.T) {
	cases := map[string]struct {
		reason     string
		args       []string
		wantCode   int
		wantStdout string
		wantStderr string
	}{
		"Help":    {reason: "Help is not a failure.", args: []string{"--help"}, wantStderr: "Usage: manager"},
		"Version": {reason: "The version goes where it can be piped.", args: []string{"--version"}, wantStdout: "unknown\n"},
		"Misuse": {
			reason: "Misuse has an exit code of its own.", args: []string{"--log-level=x"},
			wantCode: exitMisused, wantStderr: "manager: invalid options: log-level",
		},
		"NoKubeconfig": {
			reason: "A kubeconfig that is named must be there.",
			args:   []string{"--kubeconfig=/does/not/exist", "--health-bind-address=0"}, wantCode: exitFailed,
			wantStderr: "cannot load the client configuration for the hub",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if got := run(t.Context(), tc.args, noEnv, &stdout, &stderr); got != tc.wantCode {
				t.Errorf("%s\nexit code: want %d, got %d", tc.reason, tc.wantCode, got)
			}
			if got := stdout.String(); got != tc.wantStdout {
				t.Errorf("%s\nstdout: want %q, got %q", tc.reason, tc.wantStdout, got)
			}
			if got := stderr.String(); !strings.Contains(got, tc.wantStderr) {
				t.Errorf("%s\nstderr: want %q in %q", tc.reason, tc.wantStderr, got)
			}
		})
	}
}

// TestSlowClustersLeaveWorkers verifies how many hanging clusters it takes to make all others wait.
func TestSlowClustersLeaveWorkers(t *testing.T) {
	cases := map[string]struct {
		reason string
		agent  AgentOptions
		want   int
	}{
		"Default": {"Eight clusters that hang take all.", defaultOptions(noEnv).Agent, 8},
		"Share":   {"The share follows the number of workers.", AgentOptions{Workers: 128}, 16},
		"Few":     {"Each cluster has one at least.", AgentOptions{Workers: 4}, 1},
		"Set":     {"The operator decides.", AgentOptions{Workers: 64, WorkersPerCluster: 32}, 32},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.agent.workersPerCluster(); got != tc.want {
				t.Errorf("%s\nwant %d, got %d", tc.reason, tc.want, got)
			}
		})
	}
}
