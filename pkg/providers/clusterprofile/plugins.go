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
	"k8s.io/utils/clock"

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

	mu       sync.Mutex
	renewals map[types.NamespacedName]renewal // By profile.
}

// renewal is when the credentials of a profile are next read again, and when they last were to be; zero for never.
type renewal struct{ next, last time.Time }

func newPluginRunner(o Options) *pluginRunner {
	r := &pluginRunner{
		plugins: o.Plugins, options: o.Credentials, clock: o.Clock, renewals: map[types.NamespacedName]renewal{},
	}
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

// run returns a kubeconfig of the profile's server and the credentials that a plugin provides for it.
func (r *pluginRunner) run(ctx context.Context, nn types.NamespacedName, a access) (connection.Kubeconfig, error) {
	// No plugin is passed a cluster that is refused.
	refused, err := credentials.ComposeUser(a.cluster, clientcmdv1.AuthInfo{Token: "none"})
	if err == nil {
		_, err = credentials.Parse(refused, r.options)
	}
	if err != nil {
		return connection.Kubeconfig{}, err
	}
	status, err := r.plugins.Run(ctx, nn.Namespace, a.provider, a.execCluster())
	if err != nil {
		return connection.Kubeconfig{}, condition.NewError(fleetv1alpha1.ReasonNoCredentials, fmt.Sprintf(
			"The plugin of the access provider %s provides no credentials: %s", a.provider, err))
	}
	data, err := credentials.ComposeUser(a.cluster, clientcmdv1.AuthInfo{
		Token:                 status.Token,
		ClientCertificateData: []byte(status.ClientCertificateData), ClientKeyData: []byte(status.ClientKeyData),
	})
	if err != nil {
		return connection.Kubeconfig{}, err
	}
	r.renewAt(nn, renewalTime(r.clock.Now(), status.ExpirationTimestamp))
	return connection.Kubeconfig{Data: data}, nil
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

// minRenewal bounds how often a plugin is run whose credentials expire soon, or have.
const minRenewal = 10 * time.Second

// renewalTime is when credentials are read again: after 70 to 84 per cent of their life. Zero if they do not expire;
// then a rejection makes the connection read them.
func renewalTime(now time.Time, expires *metav1.Time) time.Time {
	if expires.IsZero() {
		return time.Time{}
	}
	return now.Add(max(minRenewal, wait.Jitter(expires.Sub(now)/10*7, 0.2)))
}

func (r *pluginRunner) renewAt(profile types.NamespacedName, next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.renewals[profile] = renewal{next: next, last: r.renewals[profile].last}
}

// version changes when credentials are to be read again. Each probe of a connected cluster compares it.
func (r *pluginRunner) version(profile types.NamespacedName) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.renewals[profile]
	if !at.next.IsZero() && !r.clock.Now().Before(at.next) {
		at = renewal{last: at.next}
		r.renewals[profile] = at
	}
	return at.last.Format(time.RFC3339Nano)
}

func (r *pluginRunner) forget(profile types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.renewals, profile)
}
