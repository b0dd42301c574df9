// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/tls"
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
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// maxIdentities is how many identities of a cluster, and how many ServiceAccounts, are kept. Another one takes the place of
// the one that was not used for longest, which is made again when it is needed. So a cluster with an identity for each of a
// thousand namespaces pays for it, and no other.
const maxIdentities = 64

// identityIdle is after how long an identity that is not used is dropped.
const identityIdle = 10 * time.Minute

// identities are the clients of the hub, one for each identity that is in use.
//
// Credentials are read from the workload cluster when they are first needed, again when they are used and the last look is
// older than poll, and at once after the hub has refused them. Nothing is read while nothing is done. They are in memory
// only, and the connections on which they are sent are closed when the identity is dropped.
type identities struct {
	// manager is the manager itself.
	manager *hubAccess

	// config, scheme and mapper are the manager's own, for the hub.
	config *rest.Config
	scheme *runtime.Scheme
	mapper meta.RESTMapper

	clock clock.PassiveClock

	// poll is how old the last look at a Secret may be, and retry how old that at one which could not be used.
	poll, retry time.Duration

	mu      sync.Mutex
	entries map[mcr.ClusterName]map[identityKey]*identityEntry
	swept   time.Time
}

func newIdentities(local manager.Manager, c clock.PassiveClock, poll, retry time.Duration) *identities {
	return &identities{
		manager: &hubAccess{reader: local.GetAPIReader(), writer: local.GetClient()},
		config:  local.GetConfig(), scheme: local.GetScheme(), mapper: local.GetRESTMapper(),
		clock: c, poll: poll, retry: retry,
		entries: map[mcr.ClusterName]map[identityKey]*identityEntry{},
	}
}

// identityEntry is what is known about an identity.
type identityEntry struct {
	// access is nil if problem says why it cannot be used.
	access  *hubAccess
	problem *problem

	// last is what was used before the problem arose, for letting claims go.
	last *hubAccess

	user  *credentials.User
	close func()

	read, used time.Time

	// refused is whether the hub has answered that it does not know the user, since the Secret was read.
	refused bool
}

// retryAfter is when a claim looks again at an identity that cannot be used.
func (i *identities) retryAfter() time.Duration { return wait.Jitter(i.retry+i.retry/2, 0.5) }

// use returns the hub with the rights of an identity, or why they cannot be used. secrets reads Secrets of the workload cluster.
func (i *identities) use(ctx context.Context, secrets client.Reader, key identityKey) (*hubAccess, *problem, error) {
	if key.isManager() {
		return i.manager, nil, nil
	}
	switch e, fresh := i.known(key); {
	case fresh && e.problem != nil:
		return nil, e.problem, nil
	case fresh:
		return e.access, nil, nil
	}
	var user *credentials.User
	if key.secret.Name != "" {
		var p *problem
		var err error
		if user, p, err = readUser(ctx, secrets, key); err != nil {
			return nil, nil, err
		}
		if p != nil {
			i.put(key, identityEntry{problem: p})
			return nil, p, nil
		}
	}
	e, err := i.renewed(key, user)
	return e.access, e.problem, err
}

// known returns what is known about an identity, and whether that is new enough.
func (i *identities) known(key identityKey) (identityEntry, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.clock.Now()
	i.sweep(now)
	e := i.entries[key.cluster][key]
	if e == nil {
		return identityEntry{}, false
	}
	e.used = now
	age, limit := now.Sub(e.read), i.poll
	if e.problem != nil {
		limit = i.retry
	}
	return *e, key.secret.Name == "" || !e.refused && age < limit
}

// renewed takes in what a Secret holds now.
func (i *identities) renewed(key identityKey, user *credentials.User) (identityEntry, error) {
	i.mu.Lock()
	e := i.entries[key.cluster][key]
	if e != nil && e.access != nil && e.user.Same(user) {
		defer i.mu.Unlock()
		e.read = i.clock.Now()
		if e.refused {
			// It is what the hub has refused. After a while it is tried once more: the hub can have learnt of it.
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

// put keeps what is known about an identity instead of what was known before.
func (i *identities) put(key identityKey, e identityEntry) {
	i.mu.Lock()
	defer i.mu.Unlock()
	e.read, e.used = i.clock.Now(), i.clock.Now()
	of := i.entries[key.cluster]
	if of == nil {
		of = map[identityKey]*identityEntry{}
		i.entries[key.cluster] = of
	}
	if before := of[key]; before != nil && e.access == nil {
		e.last, e.close, before.close = before.usable(), before.close, nil
	}
	i.dropLocked(key)
	if len(of) >= maxIdentities {
		i.dropLocked(slices.MinFunc(slices.Collect(maps.Keys(of)), func(a, b identityKey) int { return of[a].used.Compare(of[b].used) }))
	}
	of[key] = &e
}

// usable is the access with which claims can be let go.
func (e *identityEntry) usable() *hubAccess {
	if e.access != nil {
		return e.access
	}
	return e.last
}

// last returns what was used for an identity before it could not be used any more, or nil.
func (i *identities) last(key identityKey) *hubAccess {
	i.mu.Lock()
	defer i.mu.Unlock()
	if e := i.entries[key.cluster][key]; e != nil {
		return e.last
	}
	return nil
}

// reject notes that the hub has refused the credentials of a context's identity. They are read again before they are next
// used.
func (i *identities) reject(ctx context.Context) {
	access, err := accessOf(ctx)
	if err != nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	e := i.entries[access.key.cluster][access.key]
	switch {
	case e == nil:
	case e.access == access && e.problem == nil:
		e.refused = true
	case e.last == access:
		e.last = nil
	}
}

// forget drops the identities of a cluster.
func (i *identities) forget(cluster mcr.ClusterName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for key := range i.entries[cluster] {
		i.dropLocked(key)
	}
	delete(i.entries, cluster)
}

// sweep drops the identities that nobody uses any more.
func (i *identities) sweep(now time.Time) {
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

func (i *identities) dropLocked(key identityKey) {
	e := i.entries[key.cluster][key]
	if e == nil {
		return
	}
	if e.close != nil {
		e.close()
	}
	delete(i.entries[key.cluster], key)
}

// make makes the client of an identity.
func (i *identities) make(key identityKey, user *credentials.User) (identityEntry, error) {
	cfg, httpClient, closing, err := i.connect(key, user)
	if err != nil {
		return identityEntry{}, fmt.Errorf("cannot connect to the hub as %s: %w", key, err)
	}
	c, err := client.New(cfg, client.Options{HTTPClient: httpClient, Scheme: i.scheme, Mapper: i.mapper})
	if err != nil {
		return identityEntry{}, fmt.Errorf("cannot make a client of the hub for %s: %w", key, err)
	}
	return identityEntry{access: &hubAccess{reader: c, writer: c, key: key}, user: user, close: closing}, nil
}

// connect returns how the hub is reached as an identity.
//
// A ServiceAccount is impersonated by its name only: the API server adds the groups of a ServiceAccount by itself, so that
// Masthead needs the right to impersonate that ServiceAccount and no group. The manager's own connections are used.
//
// Credentials are sent to the hub at the manager's address of it, on connections of their own.
func (i *identities) connect(key identityKey, user *credentials.User) (*rest.Config, *http.Client, func(), error) {
	if user == nil {
		cfg := rest.CopyConfig(i.config)
		cfg.Impersonate = rest.ImpersonationConfig{
			UserName: "system:serviceaccount:" + key.serviceAccount.Namespace + ":" + key.serviceAccount.Name,
		}
		httpClient, err := rest.HTTPClientFor(cfg)
		return cfg, httpClient, func() {}, err
	}
	cfg := user.Authenticate(i.config)
	// What the manager has put around its own requests, such as what stops them without the lease, is not credentials, which
	// client-go adds elsewhere.
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
		// The credentials are for the hub, and the hub has no reason to send anybody elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, transport.CloseIdleConnections, nil
}

// readUser reads the credentials in a Secret of a workload cluster.
func readUser(ctx context.Context, secrets client.Reader, key identityKey) (*credentials.User, *problem, error) {
	secret := &corev1.Secret{}
	err := secrets.Get(ctx, key.secret, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, &problem{
			reason:  ReasonCredentialsMissing,
			message: fmt.Sprintf("There is no Secret %q in the namespace %q of this cluster.", key.secret.Name, key.secret.Namespace),
		}, nil
	case err != nil:
		if p := workloadProblem(err, fmt.Sprintf("get the Secret %q in the namespace %q", key.secret.Name, key.secret.Namespace), ReasonWorkloadRejected); p != nil {
			return nil, p, nil
		}
		return nil, nil, fmt.Errorf("cannot get Secret %q in cluster %q: %w", key.secret, key.cluster, err)
	}
	user, p := userOf(secret, key.secret)
	return user, p, nil
}

// userOf returns the credentials in a Secret.
func userOf(secret *corev1.Secret, name types.NamespacedName) (*credentials.User, *problem) {
	kubeconfig, ok := secret.Data[fleetv1alpha1.CredentialsSecretKey]
	if !ok {
		return nil, &problem{
			reason: ReasonCredentialsInvalid,
			message: fmt.Sprintf("The Secret %q in the namespace %q of this cluster has no key %q.", name.Name, name.Namespace,
				fleetv1alpha1.CredentialsSecretKey),
		}
	}
	user, err := credentials.ParseUser(kubeconfig)
	if err != nil {
		return nil, &problem{
			reason:  ReasonCredentialsInvalid,
			message: fmt.Sprintf("The Secret %q in the namespace %q of this cluster cannot be used: %v.", name.Name, name.Namespace, err),
		}
	}
	return user, nil
}

func credentialsRejected(key identityKey) *problem {
	return &problem{
		reason: ReasonCredentialsRejected,
		message: fmt.Sprintf("The hub does not accept the credentials in the Secret %q in the namespace %q of this cluster: they are wrong, "+
			"have expired or were revoked.", key.secret.Name, key.secret.Namespace),
	}
}

// String is the identity in messages.
func (k identityKey) String() string {
	switch {
	case k.serviceAccount.Name != "":
		return fmt.Sprintf("the ServiceAccount %q in the namespace %q", k.serviceAccount.Name, k.serviceAccount.Namespace)
	case k.secret.Name != "":
		return fmt.Sprintf("the user of the Secret %q in the namespace %q of this cluster", k.secret.Name, k.secret.Namespace)
	}
	return "Masthead"
}
