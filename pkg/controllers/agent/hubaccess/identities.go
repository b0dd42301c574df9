// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hubaccess

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// maxIdentities limits the identities of a cluster, and the ServiceAccounts, that are kept. A new one replaces the
// least recently used one, which is recreated when needed. So a cluster with an identity for each of a thousand
// namespaces pays for it, and no other.
const maxIdentities = 64

// identityIdle is how long an unused identity is kept.
const identityIdle = 10 * time.Minute

// Clients holds the clients of the hub, one for each identity in use.
//
// Credentials are read from the workload cluster when they are first needed, again when they are used and the last read
// is older than poll, and at once after the hub has refused them. Unused credentials are not read. They are in memory
// only, and their connections are closed when the identity is dropped.
type Clients struct {
	// Manager is the manager itself.
	Manager *Access

	// config, scheme and mapper are the manager's own, for the hub.
	config *rest.Config
	scheme *runtime.Scheme
	mapper meta.RESTMapper

	clock clock.PassiveClock

	// poll is the maximum age of the last read of a usable Secret, retry that of an unusable one.
	poll, retry time.Duration

	mu      sync.Mutex
	entries map[mcr.ClusterName]map[Key]*identityEntry
	swept   time.Time
}

// New returns a manager's clients of the hub, which are created when needed. poll and retry are the maximum ages of the
// last read of a usable and of an unusable Secret.
func New(local manager.Manager, c clock.PassiveClock, poll, retry time.Duration) *Clients {
	return &Clients{
		Manager: &Access{reader: local.GetAPIReader(), writer: local.GetClient()},
		config:  local.GetConfig(), scheme: local.GetScheme(), mapper: local.GetRESTMapper(),
		clock: c, poll: poll, retry: retry,
		entries: map[mcr.ClusterName]map[Key]*identityEntry{},
	}
}

// identityEntry is the cached state of an identity.
type identityEntry struct {
	// access is nil if problem says why it cannot be used.
	access  *Access
	problem *condition.Error

	// last is the access used before the problem arose, for releasing claims.
	last *Access

	user  *credentials.User
	close func()

	read, used time.Time

	// refused means that the hub has rejected the user since the Secret was read.
	refused bool
}

// RetryAfter is when a claim retries an unusable identity.
func (i *Clients) RetryAfter() time.Duration { return wait.Jitter(i.retry+i.retry/2, 0.5) }

// Use returns the hub with the rights of an identity, or why they cannot be used. secrets reads Secrets of the workload
// cluster.
func (i *Clients) Use(ctx context.Context, secrets client.Reader, key Key) (*Access, error) {
	if key.isManager() {
		return i.Manager, nil
	}
	if e, fresh := i.known(key); fresh {
		return e.result()
	}
	var user *credentials.User
	if key.Secret.Name != "" {
		var err error
		if user, err = readUser(ctx, secrets, key); err != nil {
			if p, ok := errors.AsType[*condition.Error](err); ok {
				i.put(key, identityEntry{problem: p})
			}
			return nil, err
		}
	}
	e, err := i.renewed(key, user)
	if err != nil {
		return nil, err
	}
	return e.result()
}

// result returns the access, or why it cannot be used.
func (e *identityEntry) result() (*Access, error) {
	if e.problem != nil {
		return nil, e.problem
	}
	return e.access, nil
}

// known returns the cached state of an identity, and whether it is fresh.
func (i *Clients) known(key Key) (identityEntry, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.clock.Now()
	i.sweep(now)
	e := i.entries[key.Cluster][key]
	if e == nil {
		return identityEntry{}, false
	}
	e.used = now
	age, limit := now.Sub(e.read), i.poll
	if e.problem != nil {
		limit = i.retry
	}
	return *e, key.Secret.Name == "" || !e.refused && age < limit
}

// renewed updates the cache with what a Secret holds now.
func (i *Clients) renewed(key Key, user *credentials.User) (identityEntry, error) {
	i.mu.Lock()
	e := i.entries[key.Cluster][key]
	if e != nil && e.access != nil && e.user.Same(user) {
		defer i.mu.Unlock()
		e.read = i.clock.Now()
		if e.refused {
			// The hub has refused these credentials. They are retried after a while: the hub may accept them by then.
			e.refused, e.problem = false, credentialsRejected(key)
			return identityEntry{problem: e.problem}, nil
		}
		e.problem = nil
		return *e, nil
	}
	i.mu.Unlock()

	made, err := i.make(key, user)
	if err != nil {
		return identityEntry{}, err
	}
	i.put(key, made)
	return made, nil
}

// put replaces the cached state of an identity.
func (i *Clients) put(key Key, e identityEntry) {
	i.mu.Lock()
	defer i.mu.Unlock()
	e.read, e.used = i.clock.Now(), i.clock.Now()
	of := i.entries[key.Cluster]
	if of == nil {
		of = map[Key]*identityEntry{}
		i.entries[key.Cluster] = of
	}
	if before := of[key]; before != nil && e.access == nil {
		e.last, e.close, before.close = before.usable(), before.close, nil
	}
	i.dropLocked(key)
	if len(of) >= maxIdentities {
		i.dropLocked(slices.MinFunc(slices.Collect(maps.Keys(of)), func(a, b Key) int { return of[a].used.Compare(of[b].used) }))
	}
	of[key] = &e
}

// usable returns the access with which claims can be released.
func (e *identityEntry) usable() *Access {
	if e.access != nil {
		return e.access
	}
	return e.last
}

// Last returns the last usable access of an identity that is unusable now, or nil.
func (i *Clients) Last(key Key) *Access {
	i.mu.Lock()
	defer i.mu.Unlock()
	if e := i.entries[key.Cluster][key]; e != nil {
		return e.last
	}
	return nil
}

// Reject records that the hub has refused the credentials of a context's identity. They are read again before their
// next use.
func (i *Clients) Reject(ctx context.Context) {
	access, err := FromContext(ctx)
	if err != nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	e := i.entries[access.Key.Cluster][access.Key]
	switch {
	case e == nil:
	case e.access == access && e.problem == nil:
		e.refused = true
	case e.last == access:
		e.last = nil
	}
}

// Forget drops the identities of a cluster.
func (i *Clients) Forget(cluster mcr.ClusterName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for key := range i.entries[cluster] {
		i.dropLocked(key)
	}
	delete(i.entries, cluster)
}

// sweep drops unused identities.
func (i *Clients) sweep(now time.Time) {
	if now.Sub(i.swept) < i.poll {
		return
	}
	i.swept = now
	for cluster, of := range i.entries {
		for key, e := range of {
			if now.Sub(e.used) > identityIdle {
				i.dropLocked(key)
			}
		}
		if len(of) == 0 {
			delete(i.entries, cluster)
		}
	}
}

func (i *Clients) dropLocked(key Key) {
	e := i.entries[key.Cluster][key]
	if e == nil {
		return
	}
	if e.close != nil {
		e.close()
	}
	delete(i.entries[key.Cluster], key)
}

// make creates the client of an identity.
func (i *Clients) make(key Key, user *credentials.User) (identityEntry, error) {
	cfg, httpClient, closing, err := i.connect(key, user)
	if err != nil {
		return identityEntry{}, fmt.Errorf("cannot connect to the hub as %s: %w", key, err)
	}
	c, err := client.New(cfg, client.Options{HTTPClient: httpClient, Scheme: i.scheme, Mapper: i.mapper})
	if err != nil {
		return identityEntry{}, fmt.Errorf("cannot create a client of the hub for %s: %w", key, err)
	}
	return identityEntry{access: &Access{reader: c, writer: c, Key: key}, user: user, close: closing}, nil
}

// connect returns how to reach the hub as an identity.
//
// A ServiceAccount is impersonated by its name only: the API server adds its groups, so that Masthead needs the right
// to impersonate that ServiceAccount and no group. The manager's own connections are used.
//
// Credentials are sent to the hub at the manager's address of it, on connections of their own.
func (i *Clients) connect(key Key, user *credentials.User) (*rest.Config, *http.Client, func(), error) {
	if user == nil {
		cfg := rest.CopyConfig(i.config)
		cfg.Impersonate = rest.ImpersonationConfig{
			UserName: "system:serviceaccount:" + key.ServiceAccount.Namespace + ":" + key.ServiceAccount.Name,
		}
		httpClient, err := rest.HTTPClientFor(cfg)
		return cfg, httpClient, func() {}, err
	}
	cfg := user.Authenticate(i.config)
	// The manager's transport wrappers, such as the one that stops requests without the lease, hold no credentials;
	// client-go adds those elsewhere.
	cfg.WrapTransport = i.config.WrapTransport
	tlsConfig, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, nil, nil, err
	}
	if tlsConfig == nil {
		tlsConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	proxy := http.ProxyFromEnvironment
	if cfg.Proxy != nil {
		proxy = cfg.Proxy
	}
	transport := utilnet.SetTransportDefaults(&http.Transport{
		Proxy: proxy, TLSClientConfig: tlsConfig, DialContext: cfg.Dial, DisableCompression: cfg.DisableCompression,
	})
	wrapped, err := rest.HTTPWrappersForConfig(cfg, transport)
	if err != nil {
		return nil, nil, nil, err
	}
	return cfg, &http.Client{
		Transport: wrapped, Timeout: cfg.Timeout,
		// The credentials are for the hub, which has no reason to redirect.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, transport.CloseIdleConnections, nil
}

// readUser reads the credentials in a Secret of a workload cluster.
func readUser(ctx context.Context, secrets client.Reader, key Key) (*credentials.User, error) {
	secret := &corev1.Secret{}
	err := secrets.Get(ctx, key.Secret, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, condition.NewError(fleetv1alpha1.ReasonCredentialsMissing,
			fmt.Sprintf("There is no Secret %q in the namespace %q of this cluster.", key.Secret.Name, key.Secret.Namespace))
	case err != nil:
		what := fmt.Sprintf("get the Secret %q in the namespace %q", key.Secret.Name, key.Secret.Namespace)
		return nil, fmt.Errorf(
			"cannot get Secret %q in cluster %q: %w",
			key.Secret,
			key.Cluster,
			WorkloadError(err, what, fleetv1alpha1.ReasonWorkloadRejected),
		)
	}
	return parseUser(secret, key.Secret)
}

// parseUser returns the credentials in a Secret.
func parseUser(secret *corev1.Secret, name types.NamespacedName) (*credentials.User, error) {
	kubeconfig, ok := secret.Data[fleetv1alpha1.CredentialsSecretKey]
	if !ok {
		return nil, &condition.Error{
			Reason: fleetv1alpha1.ReasonCredentialsInvalid,
			Message: fmt.Sprintf("The Secret %q in the namespace %q of this cluster has no key %q.", name.Name, name.Namespace,
				fleetv1alpha1.CredentialsSecretKey),
		}
	}
	user, err := credentials.ParseUser(kubeconfig)
	if err != nil {
		return nil, &condition.Error{
			Reason:  fleetv1alpha1.ReasonCredentialsInvalid,
			Message: fmt.Sprintf("The Secret %q in the namespace %q of this cluster cannot be used: %v.", name.Name, name.Namespace, err),
		}
	}
	return user, nil
}

func credentialsRejected(key Key) *condition.Error {
	return &condition.Error{
		Reason: fleetv1alpha1.ReasonCredentialsRejected,
		Message: fmt.Sprintf("The hub does not accept the credentials in the Secret %q in the namespace %q of this cluster: they are wrong, "+
			"have expired or were revoked.", key.Secret.Name, key.Secret.Namespace),
	}
}

// String is the identity in messages.
func (k Key) String() string {
	switch {
	case k.ServiceAccount.Name != "":
		return fmt.Sprintf("the ServiceAccount %q in the namespace %q", k.ServiceAccount.Name, k.ServiceAccount.Namespace)
	case k.Secret.Name != "":
		return fmt.Sprintf("the user of the Secret %q in the namespace %q of this cluster", k.Secret.Name, k.Secret.Namespace)
	}
	return "Masthead"
}
