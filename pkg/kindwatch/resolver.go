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

	"github.com/masthead-dev/masthead/pkg/budget"
)

// Defaults of ResolverOptions.
const (
	DefaultMissingFor   = time.Minute
	DefaultForbiddenFor = 2 * time.Minute
	DefaultFailedFor    = 5 * time.Second
)

// firstMissingFor is how long the first answer is believed that a kind is not served. Between the moment when a CRD
// says that it is established and the one when the API server tells of it there is a gap of less than a second.
const firstMissingFor = time.Second

// A ResourceLister gives the discovery document of one group and version. client-go's discovery client is one.
type ResourceLister interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// ResolverOptions configure a Resolver.
type ResolverOptions struct {
	// Client asks one cluster. Its requests must come to an end by themselves, as those of client-go's discovery client do
	// (after 32 seconds, if its configuration does not say otherwise). Required.
	Client ResourceLister

	// Account is charged with what is kept. It may be nil.
	Account *budget.Account

	// Clock says how old an answer is; the real one by default.
	Clock clock.PassiveClock

	// MissingFor is how long it is believed that a kind is not served. The first time it is a second, then twice as long
	// each time, up to this.
	MissingFor time.Duration

	// ForbiddenFor is how long it is believed that we may not ask, and FailedFor that asking fails.
	ForbiddenFor time.Duration
	FailedFor    time.Duration
}

// A Resolver says what an API server calls a kind. It asks for the discovery document of the kind's group and version,
// once for however many callers, and believes it until Forget or ForgetAll. That something is not there it believes for
// a while only. It never asks for everything that a cluster serves: of that there can be a thousand documents, and one
// Application needs three.
//
// What it keeps is bounded and charged, whatever the API server says and whatever it is asked for. If there is no room
// for it, it forgets everything, and asks again for each question. Its methods may be called from everywhere.
type Resolver struct {
	o ResolverOptions

	// asking has one request for each group version that is being asked for.
	asking singleflight.Group

	// holder is charged with the cache.
	holder *budget.Holder

	mu    sync.Mutex
	cache documents

	// forgotten counts calls of Forget and ForgetAll. An answer to a question from before the last one is not kept.
	forgotten int
}

// NewResolver returns a Resolver that knows nothing yet.
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

// Resolve returns a kind as it has to be asked for: by its resource, with its scope, and whether it has a status
// subresource. It waits no longer than ctx lasts. Of the errors, IsNotServed and IsForbidden tell two apart; others are
// passing. RetryAfter says for how long asking again is no use.
func (r *Resolver) Resolve(ctx context.Context, gvk schema.GroupVersionKind) (Kind, error) {
	if err := validateGVK(gvk); err != nil {
		// No server can serve it, so none is asked.
		return Kind{}, &resolveError{gvk: gvk, err: err, notServed: true, again: r.o.MissingFor}
	}
	d, epoch := r.cached(gvk)
	if d == nil {
		gv := gvk.GroupVersion()
		answer := r.asking.DoChan(strconv.Itoa(epoch)+" "+gv.String(), func() (any, error) { return r.askAgain(gvk, epoch), nil })
		select {
		case <-ctx.Done():
			return Kind{}, fmt.Errorf("cannot ask what the cluster calls %s: %w", gvk, ctx.Err())
		case got := <-answer:
			d, _ = got.Val.(*document)
		}
	}
	return d.kind(gvk, r.o.Clock.Since(d.at))
}

// Forget forgets what is known of a group: one of its CRDs, or its APIService, has changed.
func (r *Resolver) Forget(group string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgotten++
	r.cache.forget(group)
	r.charge()
}

// ForgetAll forgets everything: nobody has seen what changed until now.
func (r *Resolver) ForgetAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgotten++
	r.cache = newDocuments()
	r.charge()
}

// charge has the budget know what is kept, and forgets it if that is too much. The caller holds mu.
func (r *Resolver) charge() {
	if err := r.holder.Hold(r.cache.bytes()); err != nil {
		r.cache = newDocuments()
		_ = r.holder.Hold(0)
	}
}

// cached returns the document that answers a question, or nil, and how many times something was forgotten until now.
func (r *Resolver) cached(gvk schema.GroupVersionKind) (*document, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.cache.byVersion[gvk.GroupVersion()]
	if d != nil && !d.serves(gvk.Kind) && r.o.Clock.Since(d.at) >= d.believed {
		d = nil
	}
	return d, r.forgotten
}

// askAgain is ask, unless somebody else was answered since cached was asked.
func (r *Resolver) askAgain(gvk schema.GroupVersionKind, epoch int) *document {
	if d, now := r.cached(gvk); d != nil && now == epoch {
		return d
	}
	return r.ask(gvk.GroupVersion(), epoch)
}

// ask gets a document and keeps it, unless something was forgotten since epoch.
func (r *Resolver) ask(gv schema.GroupVersion, epoch int) *document {
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

// IsNotServed is whether Resolve failed because the cluster does not serve the kind, or not so that it can be watched.
func IsNotServed(err error) bool {
	e := (*resolveError)(nil)
	return errors.As(err, &e) && e.notServed
}

// IsForbidden is whether Resolve failed because the cluster does not let us ask.
func IsForbidden(err error) bool { return apierrors.IsForbidden(err) }

// RetryAfter is how long Resolve will go on giving the same error, as long as nothing is forgotten. It is zero for
// other errors.
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
