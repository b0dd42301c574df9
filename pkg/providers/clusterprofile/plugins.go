// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprofile

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// Plugins provide the credentials of access providers whose Secrets are not read.
type Plugins interface {
	// Names returns the access providers that have a plugin for the ClusterProfiles of a namespace, the preferred first.
	Names(namespace string) []string
	// Run returns the credentials for the cluster of a ClusterProfile in a namespace. Users are shown its errors.
	Run(
		ctx context.Context, namespace, name string, cluster *clientauthenticationv1.Cluster,
	) (*clientauthenticationv1.ExecCredentialStatus, error)
}

// pluginRunner runs plugins, and knows when to run them again.
type pluginRunner struct {
	plugins Plugins
	options credentials.Options
	clock   clock.PassiveClock

	mu   sync.Mutex
	runs map[types.NamespacedName]pluginRun // By profile.
}

const (
	// minRunInterval is how often a plugin is run for a profile at most, and how soon for credentials that expire.
	minRunInterval = 10 * time.Second
	// maxAnswerAge is how long an answer is used at most when credentials are read. Many plugins answer with another
	// token each time, which the connection takes for a change: it would try again without a back-off.
	maxAnswerAge = 5 * time.Minute
)

// pluginRun is the latest run for a profile.
type pluginRun struct {
	at     time.Time
	digest string
	data   []byte // The kubeconfig.
	err    error
	// renewAt is when the credentials are read again, and renewedAt when they last were to be; zero for never.
	renewAt, renewedAt time.Time
}

// renewal returns when the credentials last were to be read again.
func (p pluginRun) renewal(now time.Time) time.Time {
	if p.renewAt.IsZero() || now.Before(p.renewAt) {
		return p.renewedAt
	}
	return p.renewAt
}

// answers reports whether a run is the answer for an access provider, instead of another one.
func (p pluginRun) answers(digest string, now time.Time) bool {
	age := now.Sub(p.at)
	return p.digest == digest && p.renewal(now).Equal(p.renewedAt) && (age < minRunInterval || p.err == nil && age < maxAnswerAge)
}

func newPluginRunner(o Options) *pluginRunner {
	r := &pluginRunner{plugins: o.Plugins, options: o.Credentials, clock: o.Clock, runs: map[types.NamespacedName]pluginRun{}}
	if r.clock == nil {
		r.clock = clock.RealClock{}
	}
	return r
}

func (r *pluginRunner) names(namespace string) []string {
	if r.plugins == nil {
		return nil
	}
	return r.plugins.Names(namespace)
}

// kubeconfig returns the profile's server and the credentials that a plugin provides for it. One worker has a profile
// at a time.
func (r *pluginRunner) kubeconfig(ctx context.Context, nn types.NamespacedName, a access) (connection.Kubeconfig, error) {
	// No plugin is passed a cluster that is refused.
	checked, err := credentials.ComposeUser(a.cluster, clientcmdv1.AuthInfo{Token: "none"})
	if err == nil {
		_, err = credentials.Parse(checked, r.options)
	}
	if err != nil {
		return connection.Kubeconfig{}, err //nolint:wrapcheck // An InvalidError.
	}
	r.mu.Lock()
	latest := r.runs[nn]
	r.mu.Unlock()
	now := r.clock.Now()
	switch {
	case latest.answers(a.digest, now):
		return connection.Kubeconfig{Data: latest.data}, latest.err
	case now.Sub(latest.at) < minRunInterval:
		return connection.Kubeconfig{}, condition.NewError(fleetv1alpha1.ReasonNoCredentials, fmt.Sprintf(
			"The plugin of the access provider %s is run once in %s for a ClusterProfile", a.provider, minRunInterval))
	}
	data, expires, err := r.run(ctx, nn.Namespace, a)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs[nn] = pluginRun{
		at: now, digest: a.digest, data: data, err: err,
		renewAt: renewalTime(r.clock.Now(), expires), renewedAt: latest.renewal(now),
	}
	return connection.Kubeconfig{Data: data}, err
}

func (r *pluginRunner) run(ctx context.Context, namespace string, a access) (kubeconfig []byte, expires metav1.Time, err error) {
	status, err := r.plugins.Run(ctx, namespace, a.provider, a.execCluster())
	if err != nil {
		return nil, metav1.Time{}, condition.NewError(fleetv1alpha1.ReasonNoCredentials, fmt.Sprintf(
			"The plugin of the access provider %s provides no credentials: %s", a.provider, err))
	}
	kubeconfig, err = credentials.ComposeUser(a.cluster, clientcmdv1.AuthInfo{
		Token:                 status.Token,
		ClientCertificateData: []byte(status.ClientCertificateData), ClientKeyData: []byte(status.ClientKeyData),
	})
	return kubeconfig, expiry(status, r.clock.Now()), err //nolint:wrapcheck // An InvalidError.
}

// expiry is when credentials expire: at the plugin's timestamp or with the certificate, the earlier of both. Zero means
// never. An expired certificate is ignored: rejected credentials are read again with back-off.
func expiry(s *clientauthenticationv1.ExecCredentialStatus, now time.Time) metav1.Time {
	expires := ptr.Deref(s.ExpirationTimestamp, metav1.Time{})
	chain, err := cert.ParseCertsPEM([]byte(s.ClientCertificateData)) // Parse refuses one that is malformed.
	if err == nil && chain[0].NotAfter.After(now) && (expires.IsZero() || chain[0].NotAfter.Before(expires.Time)) {
		expires.Time = chain[0].NotAfter
	}
	return expires
}

// execCluster is what a plugin is passed.
func (a access) execCluster() *clientauthenticationv1.Cluster {
	return &clientauthenticationv1.Cluster{
		Server: a.cluster.Server, TLSServerName: a.cluster.TLSServerName,
		InsecureSkipTLSVerify:    a.cluster.InsecureSkipTLSVerify,
		CertificateAuthorityData: a.cluster.CertificateAuthorityData,
		ProxyURL:                 a.cluster.ProxyURL, DisableCompression: a.cluster.DisableCompression,
		Config: runtime.RawExtension{Raw: a.config},
	}
}

// renewalTime is when credentials are read again: after 70 to 84 per cent of their life. Zero if they do not expire;
// then a rejection makes the connection read them.
func renewalTime(now time.Time, expires metav1.Time) time.Time {
	if expires.IsZero() {
		return time.Time{}
	}
	return now.Add(max(minRunInterval, wait.Jitter(expires.Sub(now)/10*7, 0.2)))
}

// version changes when credentials are to be read again. Each probe of a connected cluster compares it.
func (r *pluginRunner) version(profile types.NamespacedName) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.runs[profile].renewal(r.clock.Now()).Format(time.RFC3339Nano)
}

func (r *pluginRunner) forget(profile types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.runs, profile)
}
