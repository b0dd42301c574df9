// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// ConnectionOptions are the limits of each connection to a workload cluster.
type ConnectionOptions struct {
	// Workers is how many clusters are connected for the first time at once. As many are probed at once, and half as many
	// that failed before are retried, and probed again.
	Workers int `json:"workers"`

	// WorkersPerNamespace is how many of them one namespace of the hub may use; 0 means half.
	WorkersPerNamespace int `json:"workersPerNamespace"`

	// ProbeInterval is the time between two health probes of a cluster.
	ProbeInterval metav1.Duration `json:"probeInterval"`

	// ProbeTimeout is how long one request of a probe may take. A whole probe may take twice as long.
	ProbeTimeout metav1.Duration `json:"probeTimeout"`

	// ProbeFailures is how many probes in a row fail before a cluster is disconnected.
	ProbeFailures int `json:"probeFailures"`

	// UnsyncedAfter is how long a kind of a connected cluster may be unsynced before its ClusterProfile reports it.
	UnsyncedAfter metav1.Duration `json:"unsyncedAfter"`

	// ConnectTimeout is how long one attempt to connect may take.
	ConnectTimeout metav1.Duration `json:"connectTimeout"`

	// BackoffBase is the longest wait before the second attempt to connect.
	BackoffBase metav1.Duration `json:"backoffBase"`

	// BackoffMax is the longest wait before any attempt to connect.
	BackoffMax metav1.Duration `json:"backoffMax"`

	// GracePeriod is how long a connected cluster is kept while its source reports it as not ready.
	GracePeriod metav1.Duration `json:"gracePeriod"`

	// DrainTimeout is how long running work may go on before a cluster is disconnected.
	DrainTimeout metav1.Duration `json:"drainTimeout"`

	// OffboardTimeout bounds the cleanup in a cluster that is un-enrolled.
	OffboardTimeout metav1.Duration `json:"offboardTimeout"`

	// RequestTimeout is the deadline of each request to a workload cluster that is not a watch.
	RequestTimeout metav1.Duration `json:"requestTimeout"`

	// QPS limits the requests to one cluster, over all clients.
	QPS float32 `json:"qps"`

	// Burst is how many requests may go over QPS for a moment.
	Burst int `json:"burst"`

	// Lists is how many kinds are listed at once, over all clusters. Only the initial state of a kind is listed: it is
	// watched afterwards.
	Lists int `json:"lists"`

	// MaxAnswerMiB is how large an answer of a workload cluster's API server, or an event of a watch, may be.
	MaxAnswerMiB int `json:"maxAnswerMiB"`

	// MaxListMiB is how large a list, or a page of one, may be. A page that is larger is requested again with fewer
	// objects.
	MaxListMiB int `json:"maxListMiB"`

	// MaxDecodedMiB bounds the memory that any of them may take while it is read and decoded.
	MaxDecodedMiB int `json:"maxDecodedMiB"`

	// AllowInsecureKubeconfigTLS accepts kubeconfigs with insecure-skip-tls-verify.
	AllowInsecureKubeconfigTLS bool `json:"allowInsecureKubeconfigTLS"`

	// AllowKubeconfigProxy accepts kubeconfigs with proxy-url.
	AllowKubeconfigProxy bool `json:"allowKubeconfigProxy"`

	// AllowLoopbackEndpoints accepts API servers on this machine's loopback interface, for development.
	AllowLoopbackEndpoints bool `json:"allowLoopbackEndpoints"`

	// DeniedEndpointCIDRs are networks whose API servers and proxies are never connected to, regardless of the name that
	// resolves there; beside link-local, loopback, unspecified and multicast addresses and clouds' metadata services,
	// which are always refused.
	DeniedEndpointCIDRs []string `json:"deniedEndpointCIDRs"`
}

// answerLimits are the limits of an answer of so many MiB.
func (o ConnectionOptions) answerLimits(mib int) limits.Limits {
	l := limits.WithBytes(int64(mib) * mebibyte)
	l.Cost = int64(o.MaxDecodedMiB) * mebibyte
	return l
}

// deniedCIDRs are the denied networks, after Validate has accepted them.
func (o ConnectionOptions) deniedCIDRs() []netip.Prefix {
	var denied []netip.Prefix
	for _, cidr := range o.DeniedEndpointCIDRs {
		if p, err := credentials.ParseCIDR(cidr); err == nil {
			denied = append(denied, p)
		}
	}
	return denied
}

// credentials is the policy for kubeconfigs.
func (o ConnectionOptions) credentials() credentials.Options {
	return credentials.Options{
		AllowInsecureTLS: o.AllowInsecureKubeconfigTLS,
		AllowProxy:       o.AllowKubeconfigProxy,
		AllowLoopback:    o.AllowLoopbackEndpoints,
		DeniedCIDRs:      o.deniedCIDRs(),
	}
}
