// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	"github.com/masthead-dev/masthead/pkg/limits"
)

// Defaults of ResolverOptions.
const (
	DefaultMissingFor   = time.Minute
	DefaultForbiddenFor = 2 * time.Minute
	DefaultFailedFor    = 5 * time.Second
)

// firstMissingFor is how long the first negative result is cached. Discovery lags less than a second behind a CRD's
// Established condition.
const firstMissingFor = time.Second

// A ResourceLister gets the discovery document of one group and version. client-go's discovery client is one.
type ResourceLister interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// ResolverOptions configure a Resolver.
type ResolverOptions struct {
	// Client reads one cluster. Its requests must time out by themselves, as those of client-go's discovery client do
	// (after 32 seconds by default). Required.
	Client ResourceLister

	// Account is charged with the cache. It may be nil.
	Account *limits.Account

	// Clock measures the age of cached results; the real one by default.
	Clock clock.PassiveClock

	// MissingFor is the maximum time for which it is cached that a kind is not served: one second at first, then twice as
	// long each time, up to this.
	MissingFor time.Duration

	// ForbiddenFor is how long a Forbidden error is cached, and FailedFor other errors.
	ForbiddenFor time.Duration
	FailedFor    time.Duration
}

// A Resolver maps a kind to an API server's resource. It gets the discovery document of the kind's group and version,
// with one request for all concurrent callers, and caches it until Forget or ForgetAll. Negative results expire. It
// never reads everything that a cluster serves: that can be a thousand documents, and one Application needs three.
//
// Its cache is bounded and charged, for any requests and any responses of the API server. If the budget has no
// room, it clears the cache, and each call sends a request. Its methods are safe for concurrent use.
type Resolver struct {
	o ResolverOptions

	// asking has one request in flight per group version.
	asking singleflight.Group

	// holder is charged with the cache.
	holder *limits.Holder

	mu    sync.Mutex
	cache documents

	// forgotten counts calls of Forget and ForgetAll. A response to a request from before the last one is not cached.
	forgotten int
}

// NewResolver returns a Resolver with an empty cache.
func NewResolver(o ResolverOptions) *Resolver {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	for d, byDefault := range map[*time.Duration]time.Duration{
		&o.MissingFor: DefaultMissingFor, &o.ForbiddenFor: DefaultForbiddenFor, &o.FailedFor: DefaultFailedFor,
	} {
		if *d <= 0 {
			*d = byDefault
		}
	}
	r := &Resolver{o: o, cache: newDocuments()}
	r.holder = o.Account.Holder(func(error) { r.ForgetAll() })
	return r
}

// Resolve returns a kind with its resource, its scope, and whether it has a status subresource. It waits until ctx ends
// at most. Check errors with IsNotServed and IsForbidden; others are transient. RetryAfter returns how long the error
// is cached.
func (r *Resolver) Resolve(ctx context.Context, gvk schema.GroupVersionKind) (Kind, error) {
	if err := validateGVK(gvk); err != nil {
		// No server can serve it, so no request is sent.
		return Kind{}, &resolveError{gvk: gvk, err: err, notServed: true, again: r.o.MissingFor}
	}
	d, epoch := r.cached(gvk)
	if d == nil {
		gv := gvk.GroupVersion()
		answer := r.asking.DoChan(strconv.Itoa(epoch)+" "+gv.String(), func() (any, error) { return r.askAgain(gvk, epoch), nil })
		select {
		case <-ctx.Done():
			return Kind{}, fmt.Errorf("cannot discover the resource of %s: %w", gvk, ctx.Err())
		case got := <-answer:
			d, _ = got.Val.(*document)
		}
	}
	return d.kind(gvk, r.o.Clock.Since(d.at))
}

// Forget drops a group from the cache. Call it when one of its CRDs, or its APIService, has changed.
func (r *Resolver) Forget(group string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgotten++
	r.cache.forget(group)
	r.charge()
}

// ForgetAll clears the cache. Call it when changes may have been missed.
func (r *Resolver) ForgetAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgotten++
	r.cache = newDocuments()
	r.charge()
}

// charge reports the size of the cache to the budget, and clears the cache if that is refused. The caller holds mu.
func (r *Resolver) charge() {
	if err := r.holder.Hold(r.cache.bytes()); err != nil {
		r.cache = newDocuments()
		_ = r.holder.Hold(0)
	}
}

// cached returns the cached document for a kind, or nil, and the current value of forgotten.
func (r *Resolver) cached(gvk schema.GroupVersionKind) (*document, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.cache.byVersion[gvk.GroupVersion()]
	if d != nil && !d.serves(gvk.Kind) && r.o.Clock.Since(d.at) >= d.believed {
		d = nil
	}
	return d, r.forgotten
}

// askAgain is ask, unless another caller has filled the cache since cached was called.
func (r *Resolver) askAgain(gvk schema.GroupVersionKind, epoch int) *document {
	if d, now := r.cached(gvk); d != nil && now == epoch {
		return d
	}
	return r.fetch(gvk.GroupVersion(), epoch)
}

// fetch gets a document and caches it, unless Forget or ForgetAll was called since epoch.
func (r *Resolver) fetch(gv schema.GroupVersion, epoch int) *document {
	list, err := r.o.Client.ServerResourcesForGroupVersion(gv.String())
	d := newDocument(gv, list, err)
	d.at = r.o.Clock.Now()

	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case apierrors.IsForbidden(d.err):
		d.believed = r.o.ForbiddenFor
	case d.err != nil:
		d.believed = r.o.FailedFor
	default:
		d.missing = min(firstMissingFor, r.o.MissingFor)
		if before := r.cache.byVersion[gv]; before != nil && before.missing > 0 {
			d.missing = min(2*before.missing, r.o.MissingFor)
		}
		d.believed = d.missing
	}
	if r.forgotten == epoch {
		r.cache.put(gv, d)
		r.charge()
	}
	return d
}

// resolveError says why a kind could not be resolved.
type resolveError struct {
	gvk       schema.GroupVersionKind
	err       error
	notServed bool
	again     time.Duration
}

func (e *resolveError) Error() string {
	kind := fmt.Sprintf("kind %q of %q", e.gvk.Kind, e.gvk.GroupVersion())
	switch {
	case e.notServed && e.err != nil:
		return "the cluster does not serve " + kind + ": " + e.err.Error()
	case e.notServed:
		return "the cluster does not serve " + kind
	}
	return "cannot find out whether the cluster serves " + kind + ": " + e.err.Error()
}

func (e *resolveError) Unwrap() error { return e.err }

// IsNotServed reports whether Resolve failed because the cluster does not serve the kind, or not in a watchable form.
func IsNotServed(err error) bool {
	e := (*resolveError)(nil)
	return errors.As(err, &e) && e.notServed
}

// IsForbidden reports whether Resolve failed because Masthead may not read the discovery document.
func IsForbidden(err error) bool { return apierrors.IsForbidden(err) }

// RetryAfter returns how long Resolve will keep returning the same error, unless Forget or ForgetAll is called. It is
// zero for other errors.
func RetryAfter(err error) time.Duration {
	if e := (*resolveError)(nil); errors.As(err, &e) {
		return e.again
	}
	return 0
}

// validateGVK returns why no server can serve a kind, or nil.
func validateGVK(gvk schema.GroupVersionKind) error {
	if err := (Kind{GroupVersionKind: gvk, Resource: "any"}).Validate(); err != nil {
		return err
	}
	// The rule for CRDs. It also bounds the length.
	if errs := validation.IsDNS1035Label(strings.ToLower(gvk.Kind)); len(errs) > 0 {
		return fmt.Errorf("invalid kind %q: %s", gvk.Kind, errs[0])
	}
	return nil
}
