// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/leaderelection"
	"sigs.k8s.io/yaml"

	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/pkg/providers/connection/transport"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// Options are the settings of the manager. Each can be given as a flag and in the file that --config names, which is
// these Options as YAML; a flag wins over the file. A field that the file misspells is an error.
type Options struct {
	// Kubeconfig of the hub. Empty: $KUBECONFIG, else the ServiceAccount of the Pod, else ~/.kube/config.
	Kubeconfig string `json:"kubeconfig"`

	// Namespace that the manager runs in, and in which it holds its lease. Claims never go there. Default: $POD_NAMESPACE,
	// else masthead-system.
	Namespace string `json:"namespace"`

	// Sources are where enrolled clusters come from: "capi", the Clusters of Cluster API, "kubeconfig", Secrets, and
	// "clusterprofile", ClusterProfiles of other cluster managers. Default: the first two. Sources that are not listed are
	// not watched, and their kinds need not be installed.
	Sources []string `json:"sources"`

	ClusterProfiles ClusterProfileOptions `json:"clusterProfiles"`

	// Hub distinguishes this hub from others.
	Hub HubOptions `json:"hub"`

	// GracefulShutdownTimeout is how long running work may take to end when the manager is stopped.
	GracefulShutdownTimeout metav1.Duration `json:"gracefulShutdownTimeout"`

	// MemoryBudgetMiB bounds the memory for the cached objects of all workload clusters and their answers in flight. Zero:
	// a twelfth of the memory limit, which is GOMEMLIMIT or 90 percent of the container's; 256 without one.
	MemoryBudgetMiB int `json:"memoryBudgetMiB"`

	Log            LogOptions            `json:"log"`
	Metrics        MetricsOptions        `json:"metrics"`
	Health         HealthOptions         `json:"health"`
	Pprof          PprofOptions          `json:"pprof"`
	LeaderElection LeaderElectionOptions `json:"leaderElection"`
	Connections    ConnectionOptions     `json:"connections"`
	Agent          AgentOptions          `json:"agent"`
	Applications   ApplicationOptions    `json:"applications"`
	References     ReferenceOptions      `json:"references"`
	Imports        ImportOptions         `json:"imports"`
}

// HubOptions distinguish this hub from others that connect to the same workload clusters.
type HubOptions struct {
	// Identity of this hub: a DNS label of at most 40 characters. Set it to the identity of another hub only for a hub
	// that replaces that one. Empty: the UID of the hub's namespace kube-system.
	Identity string `json:"identity"`

	// Name of this hub for people, of at most 63 bytes. Other hubs that are refused are shown it.
	Name string `json:"name"`
}

// LogOptions say what is logged, and how.
type LogOptions struct {
	// Level is error, info, debug or trace.
	Level string `json:"level"`

	// Format is json or text.
	Format string `json:"format"`
}

// MetricsOptions say where metrics can be read.
type MetricsOptions struct {
	// BindAddress of the endpoint; "0" for none.
	BindAddress string `json:"bindAddress"`

	// Secure serves HTTPS, and answers only those whose token may get the path /metrics in the hub.
	Secure bool `json:"secure"`

	// CertDir holds tls.crt and tls.key for HTTPS. Empty: a self-signed certificate is created at each start.
	CertDir string `json:"certDir"`
}

// HealthOptions say where /healthz and /readyz are served.
type HealthOptions struct {
	// BindAddress of the endpoint; "0" for none.
	BindAddress string `json:"bindAddress"`
}

// PprofOptions say where profiles can be taken.
type PprofOptions struct {
	// BindAddress of the endpoint, which must be a loopback address because it has no authentication. Empty: none.
	BindAddress string `json:"bindAddress"`
}

// LeaderElectionOptions configure how several replicas elect the active one.
type LeaderElectionOptions struct {
	// Enabled makes this replica wait until it holds the lease.
	Enabled bool `json:"enabled"`

	// LeaseDuration is how long the others wait for a leader that stopped renewing.
	LeaseDuration metav1.Duration `json:"leaseDuration"`

	// RenewDeadline is how long the leader tries to renew before it gives up.
	RenewDeadline metav1.Duration `json:"renewDeadline"`

	// RetryPeriod is the time between two attempts.
	RetryPeriod metav1.Duration `json:"retryPeriod"`
}

// AgentOptions are the limits of the agent.
type AgentOptions struct {
	// Workers is how many claims are reconciled at once.
	Workers int `json:"workers"`

	// WorkersPerCluster is how many of them one cluster may use; 0 means an eighth. A cluster whose API server is slow
	// holds that many for as long as its requests take, so Workers divided by it is how many such clusters block all
	// others: eight by default. A worker is a goroutine that mostly waits, so more of them cost little; more per cluster
	// make the first synchronisation of a cluster with many claims faster.
	WorkersPerCluster int `json:"workersPerCluster"`

	// ProtectedNamespaces of the hub are never the target of a claim, beside kube-*, *-system, cert-manager and the
	// manager's own.
	ProtectedNamespaces []string `json:"protectedNamespaces"`
}

// The workers of the agent, see AgentOptions.
const (
	defaultAgentWorkers     = 64
	slowClustersToFillAgent = 8
)

// workersPerCluster is the share of the agent's workers that one cluster may have.
func (o AgentOptions) workersPerCluster() int {
	if o.WorkersPerCluster > 0 {
		return o.WorkersPerCluster
	}
	return max(1, o.Workers/slowClustersToFillAgent)
}

// defaultNamespace is where config/ installs the manager.
const defaultNamespace = "masthead-system"

// Values of LogOptions.
var (
	logLevels  = []string{"error", "info", "debug", "trace"} //nolint:gochecknoglobals // A constant.
	logFormats = []string{"json", "text"}                    //nolint:gochecknoglobals // A constant.
)

// defaultOptions are the settings of a manager without flags or file.
func defaultOptions(env func(string) string) Options {
	duration := func(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
	o := Options{
		Namespace:               env("POD_NAMESPACE"),
		Sources:                 defaultSources(),
		GracefulShutdownTimeout: duration(30 * time.Second),
		Log:                     LogOptions{Level: "info", Format: "json"},
		Metrics:                 MetricsOptions{BindAddress: ":8443", Secure: true},
		Health:                  HealthOptions{BindAddress: ":8081"},
		LeaderElection: LeaderElectionOptions{
			// Those of controller-runtime, to be seen in --help.
			LeaseDuration: duration(15 * time.Second),
			RenewDeadline: duration(10 * time.Second),
			RetryPeriod:   duration(2 * time.Second),
		},
		Connections: ConnectionOptions{
			Workers:         connection.DefaultMaxConcurrentReconciles,
			ProbeInterval:   duration(connection.DefaultProbeInterval),
			ProbeTimeout:    duration(connection.DefaultProbeTimeout),
			ProbeFailures:   connection.DefaultProbeFailureThreshold,
			UnsyncedAfter:   duration(connection.DefaultUnsyncedAfter),
			ConnectTimeout:  duration(connection.DefaultConnectTimeout),
			BackoffBase:     duration(connection.DefaultBackoffBase),
			BackoffMax:      duration(connection.DefaultBackoffMax),
			GracePeriod:     duration(connection.DefaultNotReadyGracePeriod),
			DrainTimeout:    duration(connection.DefaultDrainTimeout),
			OffboardTimeout: duration(connection.DefaultOffboardTimeout),
			RequestTimeout:  duration(connection.DefaultRequestTimeout),
			QPS:             connection.DefaultQPS,
			Burst:           connection.DefaultBurst,
			Lists:           kindwatch.DefaultLists,
			MaxAnswerMiB:    transport.DefaultObjectLimit / mebibyte,
			MaxListMiB:      transport.DefaultListLimit / mebibyte,
			MaxDecodedMiB:   limits.DefaultCost / mebibyte,
		},
		Agent: AgentOptions{
			Workers:             defaultAgentWorkers,
			ProtectedNamespaces: []string{"crossplane-system"},
		},
		Applications: defaultApplicationOptions(),
		Imports:      defaultImportOptions(),
	}
	if o.Namespace == "" {
		o.Namespace = defaultNamespace
	}
	return o
}

// invocation is a parsed command line.
type invocation struct {
	Options Options
	// Version asks for the version instead of a manager.
	Version bool
}

// parse reads the command line, and the file that it names. It returns pflag.ErrHelp if help was requested, which it
// wrote to usage.
func parse(args []string, env func(string) string, usage io.Writer) (invocation, error) {
	var in invocation
	in.Options = defaultOptions(env)
	var config string
	flags := bind(&in, &config, usage)
	if err := flags.Parse(args); err != nil {
		return invocation{}, err
	}
	if config != "" {
		in.Options = defaultOptions(env)
		data, err := os.ReadFile(config) //nolint:gosec // The command line names the file.
		if err != nil {
			return invocation{}, fmt.Errorf("cannot read the config file: %w", err)
		}
		if err := yaml.UnmarshalStrict(data, &in.Options); err != nil {
			return invocation{}, fmt.Errorf("cannot decode the config file %s: %w", config, err)
		}
		// Binding a flag sets its default, which is now what the file says; parsing again puts the flags over it.
		if err := bind(&in, &config, usage).Parse(args); err != nil {
			return invocation{}, err
		}
	}
	if flags.NArg() > 0 {
		return invocation{}, fmt.Errorf("unexpected arguments: %q", flags.Args())
	}
	return in, in.Options.Validate()
}

// bind makes a flag of each option, with the option's present value as its default.
//
//nolint:funlen // A list of flags.
func bind(in *invocation, config *string, usage io.Writer) *pflag.FlagSet {
	o := &in.Options
	f := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	f.SortFlags = false
	f.SetOutput(usage)
	f.Usage = func() {
		_, _ = fmt.Fprintf(usage, "Usage: manager [flags]\n\nThe Masthead controller manager.\n\n%s", f.FlagUsagesWrapped(120))
	}
	text := func(p *string, name, help string) { f.StringVar(p, name, *p, help) }
	number := func(p *int, name, help string) { f.IntVar(p, name, *p, help) }
	toggle := func(p *bool, name, help string) { f.BoolVar(p, name, *p, help) }
	span := func(p *metav1.Duration, name, help string) { f.DurationVar(&p.Duration, name, p.Duration, help) }

	f.StringVar(config, "config", "", "file with these options as YAML; flags take precedence over it")
	toggle(&in.Version, "version", "print the version and exit")
	text(&o.Kubeconfig, "kubeconfig", "kubeconfig of the hub (default: $KUBECONFIG, else the Pod's ServiceAccount, else ~/.kube/config)")
	text(&o.Namespace, "namespace", "namespace in which the manager runs and holds its lease; claims never target it")
	o.bindSources(f)
	text(&o.Hub.Identity, "hub-identity", "identity of this hub in workload clusters, a DNS label of at most 40 characters; "+
		"a hub that replaces another takes its identity (default: the UID of its namespace kube-system)")
	text(&o.Hub.Name, "hub-name", "name of this hub for people, reported to other hubs that are refused")
	span(&o.GracefulShutdownTimeout, "graceful-shutdown-timeout", "how long running work may take to finish when the manager is stopped")

	number(&o.MemoryBudgetMiB, "memory-budget-mib",
		"memory for all workload clusters' cached objects and answers in flight (default: a twelfth of the memory limit)")
	text(&o.Log.Level, "log-level", "log level: "+strings.Join(logLevels, ", "))
	text(&o.Log.Format, "log-format", "log format: "+strings.Join(logFormats, ", "))
	text(&o.Metrics.BindAddress, "metrics-bind-address", `address of the metrics endpoint, or "0" for none`)
	toggle(&o.Metrics.Secure, "metrics-secure", "serve metrics over HTTPS, to users who may get /metrics in the hub")
	text(&o.Metrics.CertDir, "metrics-cert-dir", "folder with tls.crt and tls.key for the metrics endpoint (default: a self-signed certificate)")
	text(&o.Health.BindAddress, "health-bind-address", `address of /healthz and /readyz, or "0" for none`)
	text(&o.Pprof.BindAddress, "pprof-bind-address", "loopback address of the pprof endpoint, which has no authentication (default: none)")

	toggle(&o.LeaderElection.Enabled, "leader-elect", "wait until this replica holds the lease")
	span(&o.LeaderElection.LeaseDuration, "leader-elect-lease-duration", "how long others wait for a leader that stopped renewing")
	span(&o.LeaderElection.RenewDeadline, "leader-elect-renew-deadline", "how long the leader tries to renew before it gives up; more than 1.2 times the retry period")
	span(&o.LeaderElection.RetryPeriod, "leader-elect-retry-period", "time between two attempts to get or renew the lease")

	c := &o.Connections
	number(&c.Workers, "connection-workers", "number of clusters connected for the first time concurrently, at least 50; as many are probed, and half as many retried")
	number(&c.WorkersPerNamespace, "connection-workers-per-namespace", "how many of these clusters may belong to one namespace of the hub (default: half)")
	span(&c.ProbeInterval, "probe-interval", "time between two health probes of a cluster")
	span(&c.ProbeTimeout, "probe-timeout", "how long one request of a probe may take; the whole probe may take twice as long")
	number(&c.ProbeFailures, "probe-failures", "how many probes in a row fail before a cluster is disconnected")
	span(&c.UnsyncedAfter, "unsynced-after", "how long a kind may be unsynced before the ClusterProfile of its cluster says so")
	span(&c.ConnectTimeout, "connect-timeout", "how long one attempt to connect may take")
	span(&c.BackoffBase, "backoff-base", "longest wait before the second attempt to connect")
	span(&c.BackoffMax, "backoff-max", "longest wait before any attempt to connect")
	span(&c.GracePeriod, "grace-period", "how long a connected cluster is kept while its source says that it is not ready")
	span(&c.DrainTimeout, "drain-timeout", "how long running work may continue before a cluster is disconnected")
	span(&c.OffboardTimeout, "offboard-timeout", "how long offboarding a cluster that is un-enrolled may take, while it answers")
	span(&c.RequestTimeout, "request-timeout", "deadline of each request to a workload cluster that is not a watch")
	f.Float32Var(&c.QPS, "cluster-qps", c.QPS, "requests per second to one cluster, over all clients")
	number(&c.Burst, "cluster-burst", "number of requests that may exceed that rate in a burst")
	number(&c.Lists, "cluster-lists", "number of kinds that are listed concurrently, over all workload clusters")
	number(&c.MaxAnswerMiB, "max-answer-mib", "maximum size of an answer of a workload cluster, or of an event of a watch")
	number(&c.MaxListMiB, "max-list-mib", "maximum size of a list of a workload cluster, or of a page of one; a larger page is requested again with fewer objects")
	number(&c.MaxDecodedMiB, "max-decoded-mib", "maximum memory that an answer or an event takes while it is read and decoded")
	toggle(&c.AllowInsecureKubeconfigTLS, "allow-insecure-kubeconfig-tls", "accept kubeconfigs with insecure-skip-tls-verify")
	toggle(&c.AllowKubeconfigProxy, "allow-kubeconfig-proxy", "accept kubeconfigs with proxy-url")
	toggle(&c.AllowLoopbackEndpoints, "allow-loopback-endpoints", "accept API servers on this machine's loopback interface, for development")
	f.StringSliceVar(&c.DeniedEndpointCIDRs, "denied-endpoint-cidrs", c.DeniedEndpointCIDRs,
		"networks of API servers and proxies that are not connected to; link-local and similar ones are always refused")

	number(&o.Agent.Workers, "agent-workers", "number of claims that are reconciled concurrently")
	number(&o.Agent.WorkersPerCluster, "agent-workers-per-cluster", "how many of these claims may belong to one cluster; slow clusters occupy no more workers (default: an eighth)")
	f.StringSliceVar(&o.Agent.ProtectedNamespaces, "protected-namespaces", o.Agent.ProtectedNamespaces,
		"namespaces of the hub that claims never target, besides kube-*, *-system, cert-manager and the manager's own")
	o.Applications.bind(f)
	o.References.bind(f)
	o.Imports.bind(f)
	return f
}

// minConnectionWorkers is the connection provider's minimum: dead clusters cost a time-out each, and leave room only if
// there are many workers.
const minConnectionWorkers = 50

// Validate reports every invalid option.
//
//nolint:funlen // A list of rules.
func (o *Options) Validate() error {
	var errs []error
	problem := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	problem(len(validation.IsDNS1123Label(o.Namespace)) > 0, "namespace: %q is not the name of a namespace", o.Namespace)
	if o.Hub.Identity != "" {
		_, err := hubidentity.Parse(o.Hub.Identity)
		problem(err != nil, "hub-identity: %v", err)
	}
	_, err := hubidentity.ParseName(o.Hub.Name)
	problem(err != nil, "hub-name: %v", err)
	for _, ns := range o.Agent.ProtectedNamespaces {
		problem(len(validation.IsDNS1123Label(ns)) > 0, "protected-namespaces: %q is not the name of a namespace", ns)
	}
	problem(!slices.Contains(logLevels, o.Log.Level), "log-level: %q is not one of %s", o.Log.Level, strings.Join(logLevels, ", "))
	problem(!slices.Contains(logFormats, o.Log.Format), "log-format: %q is not one of %s", o.Log.Format, strings.Join(logFormats, ", "))
	problem(!isAddress(o.Metrics.BindAddress), "metrics-bind-address: %q is not an address", o.Metrics.BindAddress)
	problem(!isAddress(o.Health.BindAddress), "health-bind-address: %q is not an address", o.Health.BindAddress)
	problem(o.Pprof.BindAddress != "" && !isLoopback(o.Pprof.BindAddress),
		"pprof-bind-address: %q is not a loopback address, and profiles have no authentication", o.Pprof.BindAddress)
	le := o.LeaderElection
	// client-go requires this, but reports it only when the manager starts, and without the flags' names.
	problem(le.LeaseDuration.Duration <= le.RenewDeadline.Duration,
		"leader-elect-lease-duration must be longer than leader-elect-renew-deadline")
	problem(le.RenewDeadline.Duration <= time.Duration(leaderelection.JitterFactor*float64(le.RetryPeriod.Duration)),
		"leader-elect-renew-deadline must be longer than %v times leader-elect-retry-period", leaderelection.JitterFactor)

	c := o.Connections
	for name, d := range map[string]metav1.Duration{
		"graceful-shutdown-timeout": o.GracefulShutdownTimeout, "leader-elect-retry-period": le.RetryPeriod,
		"probe-interval": c.ProbeInterval, "probe-timeout": c.ProbeTimeout, "connect-timeout": c.ConnectTimeout,
		"backoff-base": c.BackoffBase, "backoff-max": c.BackoffMax, "grace-period": c.GracePeriod,
		"drain-timeout": c.DrainTimeout, "offboard-timeout": c.OffboardTimeout, "request-timeout": c.RequestTimeout,
		"unsynced-after": c.UnsyncedAfter,
	} {
		problem(d.Duration <= 0, "%s: must be longer than zero", name)
	}
	problem(c.Workers < minConnectionWorkers, "connection-workers: must be at least %d", minConnectionWorkers)
	problem(c.WorkersPerNamespace < 0, "connection-workers-per-namespace: must not be negative")
	problem(c.ProbeFailures < 1, "probe-failures: must be at least 1")
	problem(c.BackoffMax.Duration < c.BackoffBase.Duration, "backoff-max: must not be shorter than backoff-base")
	for _, cidr := range c.DeniedEndpointCIDRs {
		_, err := credentials.ParseCIDR(cidr)
		problem(err != nil, "denied-endpoint-cidrs: %v", err)
	}
	problem(c.QPS <= 0, "cluster-qps: must be more than zero")
	problem(c.Burst < 1, "cluster-burst: must be at least 1")
	problem(c.Lists < 1, "cluster-lists: must be at least 1")
	problem(c.MaxAnswerMiB < 1, "max-answer-mib: must be at least 1")
	problem(c.MaxListMiB < 1, "max-list-mib: must be at least 1")
	problem(o.MemoryBudgetMiB < 0, "memory-budget-mib: must not be negative")
	problem(c.MaxDecodedMiB < 1, "max-decoded-mib: must be at least 1")
	problem(o.Agent.Workers < 1, "agent-workers: must be at least 1")
	problem(o.Agent.WorkersPerCluster < 0, "agent-workers-per-cluster: must not be negative")
	o.Applications.validate(problem)
	o.References.validate(problem)
	o.Imports.validate(problem)
	o.validateSources(problem)

	// Some come out of a map: a stable order makes one message out of one mistake.
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	if err := kerrors.NewAggregate(errs); err != nil {
		return fmt.Errorf("invalid options: %w", err)
	}
	return nil
}

// isAddress says whether an address can be listened on, or is "0" for none.
func isAddress(address string) bool {
	if address == "0" {
		return true
	}
	_, port, err := net.SplitHostPort(address)
	return err == nil && port != ""
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
