// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package dump

// managerFlags are the flags of the manager, none of which takes a credential. docs/reference/flags.md has the same,
// which TestManagerFlags checks.
func managerFlags() []string {
	return []string{
		"config", "version", "kubeconfig", "namespace", "sources", "hub-identity", "hub-name",
		"graceful-shutdown-timeout", "log-level", "log-format", "metrics-bind-address", "metrics-secure",
		"metrics-cert-dir", "health-bind-address", "pprof-bind-address", "leader-elect",
		"leader-elect-lease-duration", "leader-elect-renew-deadline", "leader-elect-retry-period",
		"connection-workers", "connection-workers-per-namespace", "probe-interval", "probe-timeout",
		"probe-failures", "unsynced-after", "connect-timeout", "backoff-base", "backoff-max", "grace-period",
		"drain-timeout", "offboard-timeout", "request-timeout", "cluster-qps", "cluster-burst", "cluster-lists",
		"cluster-profile-access-config", "cluster-profile-plugin-namespaces",
		"memory-budget-mib", "max-answer-mib", "max-list-mib", "max-decoded-mib",
		"allow-insecure-kubeconfig-tls", "allow-kubeconfig-proxy", "allow-loopback-endpoints",
		"denied-endpoint-cidrs", "agent-workers", "agent-workers-per-cluster", "hub-references-class",
		"imports", "import-workers", "allowed-token-endpoints", "allowed-import-servers", "application-workers",
		"application-metrics", "health-library", "protected-namespaces",
	}
}
