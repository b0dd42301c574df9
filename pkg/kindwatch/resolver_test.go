// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/masthead-dev/masthead/pkg/limits"
)

// lister is a discovery client that says what a test says, and counts.
type lister struct {
	mu        sync.Mutex
	answer    func(gv string) (*metav1.APIResourceList, error)
	requested map[string]int
}

func (l *lister) ServerResourcesForGroupVersion(gv string) (*metav1.APIResourceList, error) {
	l.mu.Lock()
	if l.requested == nil {
		l.requested = map[string]int{}
	}
	l.requested[gv]++
	answer := l.answer
	l.mu.Unlock()
	return answer(gv)
}

func (l *lister) count(gv string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requested[gv]
}

func (l *lister) says(answer func(gv string) (*metav1.APIResourceList, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answer = answer
}

func document1(resources ...metav1.APIResource) func(string) (*metav1.APIResourceList, error) {
	return func(string) (*metav1.APIResourceList, error) {
		return &metav1.APIResourceList{APIResources: resources}, nil
	}
}

func fails(err error) func(string) (*metav1.APIResourceList, error) {
	return func(string) (*metav1.APIResourceList, error) { return nil, err }
}

var (
	all       = metav1.Verbs{"get", "list", "watch"}
	widget1   = metav1.APIResource{Name: "widgets", Kind: "Widget", Namespaced: true, Verbs: all}
	widgetGVK = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}
)

func TestResolve(t *testing.T) {
	notFound := apierrors.NewNotFound(schema.GroupResource{}, "")
	for name, tc := range map[string]struct {
		reason               string
		gvk                  schema.GroupVersionKind
		answer               func(string) (*metav1.APIResourceList, error)
		want                 Kind
		notServed, forbidden bool
		message              string
	}{
		"Namespaced": {
			reason: "A kind is requested by its resource.", answer: document1(widget1),
			want: Kind{GroupVersionKind: widgetGVK, Resource: "widgets"},
		},
		"ClusterScopedWithStatus": {
			reason: "Its scope and its status subresource come from the document.",
			answer: document1(metav1.APIResource{Name: "widgets/status", Kind: "Widget"}, metav1.APIResource{Name: "widgets", Kind: "Widget", Verbs: all}),
			want:   Kind{GroupVersionKind: widgetGVK, Resource: "widgets", ClusterScoped: true, StatusSubresource: true},
		},
		"OtherSubresources": {
			reason: "A subresource is no kind to be watched, even if it has the verbs.",
			answer: document1(metav1.APIResource{Name: "gadgets/widget", Kind: "Widget", Verbs: all}), notServed: true,
			message: `the cluster does not serve kind "Widget" of "example.org/v1"`,
		},
		"NotWatchable": {
			reason: "What cannot be watched is of no use, and the message says why.",
			answer: document1(metav1.APIResource{Name: "widgets", Kind: "Widget", Verbs: metav1.Verbs{"create"}}), notServed: true,
			message: `the cluster does not serve kind "Widget" of "example.org/v1": it cannot be listed and watched`,
		},
		"Two": {
			reason: "Of two resources of one kind, one is chosen, and always the same.",
			answer: document1(
				metav1.APIResource{Name: "zwidgets", Kind: "Widget", Namespaced: true, Verbs: all}, widget1,
				metav1.APIResource{Name: "awidgets", Kind: "Widget", Namespaced: true}),
			want: Kind{GroupVersionKind: widgetGVK, Resource: "widgets"},
		},
		"OfAnotherGroup": {
			reason: "A resource that is of a kind of another group is not this one.", notServed: true,
			answer: document1(metav1.APIResource{Name: "widgets", Kind: "Widget", Group: "other.org", Verbs: all}),
		},
		"PathInResource": {
			reason: "What the server says does not lead elsewhere.", notServed: true,
			answer: document1(metav1.APIResource{Name: "..", Kind: "Widget", Verbs: all}),
		},
		"NoSuchGroup":    {reason: "404 means that there is no such group.", answer: fails(notFound), notServed: true},
		"Nothing":        {reason: "So does an empty answer.", answer: document1(), notServed: true},
		"NoAnswer":       {reason: "And none.", answer: fails(nil), notServed: true},
		"InvalidGroup":   {reason: "What cannot be served is not requested.", gvk: schema.GroupVersionKind{Group: "../x", Version: "v1", Kind: "Widget"}, notServed: true},
		"InvalidVersion": {reason: "What cannot be served is not requested.", gvk: schema.GroupVersionKind{Version: "", Kind: "Widget"}, notServed: true},
		"InvalidKind":    {reason: "What cannot be served is not requested.", gvk: schema.GroupVersionKind{Version: "v1", Kind: strings.Repeat("A", 300)}, notServed: true},
		"Forbidden": {
			reason: "A missing right for discovery is reported.", answer: fails(apierrors.NewForbidden(schema.GroupResource{}, strings.Repeat("x", 10_000), nil)), forbidden: true,
			message: `cannot find out whether the cluster serves kind "Widget" of "example.org/v1": *.example.org is forbidden: Masthead may not discover what the cluster serves`,
		},
		"Failed": {
			reason: "What fails may pass, and what it says is bounded.", answer: fails(errors.New("line\nnext" + strings.Repeat("x", 10_000))),
			message: `cannot find out whether the cluster serves kind "Widget" of "example.org/v1": line next` + strings.Repeat("x", maxText-10) + "…",
		},
		"TooMany": {
			reason:  "A document that is too large is not kept.",
			answer:  document1(make([]metav1.APIResource, maxKindsOfDocument+1)...),
			message: `cannot find out whether the cluster serves kind "Widget" of "example.org/v1": example.org/v1 has more than 4000 resources`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := &lister{answer: tc.answer}
			r := NewResolver(ResolverOptions{Client: l})
			gvk := tc.gvk
			if gvk.Empty() {
				gvk = widgetGVK
			}
			got, err := r.Resolve(t.Context(), gvk)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s%v", tc.reason, diff, err)
			}
			if IsNotServed(err) != tc.notServed || IsForbidden(err) != tc.forbidden || (err == nil) != (tc.want != Kind{}) {
				t.Errorf("%s want not served %v, forbidden %v, got %v", tc.reason, tc.notServed, tc.forbidden, err)
			}
			if tc.message != "" && (err == nil || err.Error() != tc.message) {
				t.Errorf("%s want the message %q, got %v", tc.reason, tc.message, err)
			}
			if again := RetryAfter(err); (again > 0) != (err != nil) {
				t.Errorf("%s want a time for the next request just if there is an error, got %s", tc.reason, again)
			}
			if n := l.count(gvk.GroupVersion().String()); (n == 0) != (tc.answer == nil) {
				t.Errorf("%s got %d requests", tc.reason, n)
			}
		})
	}
}

func TestAnswersAreBelieved(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Now())
	l := &lister{answer: document1(widget1)}
	r := NewResolver(ResolverOptions{Client: l, Clock: fake})
	gadget := widgetGVK
	gadget.Kind = "Gadget"
	resolve := func(gvk schema.GroupVersionKind, served bool, requested int) {
		t.Helper()
		for range 3 {
			if _, err := r.Resolve(t.Context(), gvk); (err == nil) != served || err != nil && !IsNotServed(err) {
				t.Errorf("want %s served %v, got %v", gvk.Kind, served, err)
			}
		}
		if got := l.count("example.org/v1"); got != requested {
			t.Errorf("want %d requests by now, got %d", requested, got)
		}
	}
	resolve(widgetGVK, true, 1)
	fake.Step(24 * time.Hour)
	resolve(widgetGVK, true, 1)
	// That something is missing is believed for a second, then for two, and so on up to a minute.
	resolve(gadget, false, 2)
	requested := 2
	for _, seconds := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		_, err := r.Resolve(t.Context(), gadget)
		want := time.Duration(seconds) * time.Second
		// The document that had the widget was the first one without the gadget.
		want = min(2*want, time.Minute)
		if got := RetryAfter(err); got != want {
			t.Errorf("want the next request after %s, got %s", want, got)
		}
		fake.Step(want - time.Millisecond)
		resolve(gadget, false, requested)
		fake.Step(time.Millisecond)
		requested++
		resolve(gadget, false, requested)
	}
	resolve(widgetGVK, true, requested)

	// Once the group changes, everything is requested again.
	l.says(document1(widget1, metav1.APIResource{Name: "gadgets", Kind: "Gadget", Namespaced: true, Verbs: all}))
	r.Forget("other.org")
	resolve(gadget, false, requested)
	r.Forget("example.org")
	resolve(gadget, true, requested+1)
	resolve(widgetGVK, true, requested+1)
	r.ForgetAll()
	resolve(widgetGVK, true, requested+2)
}

func TestErrorsAreBelievedForAWhile(t *testing.T) {
	for name, tc := range map[string]struct {
		err     error
		keptFor time.Duration
	}{
		"Failed":    {err: errors.New("connection refused"), keptFor: DefaultFailedFor},
		"Forbidden": {err: apierrors.NewForbidden(schema.GroupResource{}, "", nil), keptFor: DefaultForbiddenFor},
	} {
		t.Run(name, func(t *testing.T) {
			fake := clocktesting.NewFakeClock(time.Now())
			l := &lister{answer: fails(tc.err)}
			r := NewResolver(ResolverOptions{Client: l, Clock: fake})
			for range 3 {
				if _, err := r.Resolve(t.Context(), widgetGVK); err == nil || IsNotServed(err) {
					t.Errorf("want an error that does not say that the kind is not served, got %v", err)
				}
			}
			l.says(document1(widget1))
			fake.Step(tc.keptFor - time.Millisecond)
			if _, err := r.Resolve(t.Context(), widgetGVK); err == nil || l.count("example.org/v1") != 1 {
				t.Errorf("want the error to be believed, got %v after %d requests", err, l.count("example.org/v1"))
			}
			fake.Step(time.Millisecond)
			if _, err := r.Resolve(t.Context(), widgetGVK); err != nil {
				t.Errorf("want it to pass, got %v", err)
			}
		})
	}
}

func TestCallersShareARequest(t *testing.T) {
	goOn := make(chan struct{})
	l := &lister{answer: func(gv string) (*metav1.APIResourceList, error) {
		<-goOn
		return document1(widget1)(gv)
	}}
	r := NewResolver(ResolverOptions{Client: l})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Resolve(ctx, widgetGVK); !errors.Is(err, context.Canceled) {
		t.Errorf("want no caller to wait longer than its context, got %v", err)
	}
	var callers sync.WaitGroup
	for range 50 {
		callers.Go(func() {
			if _, err := r.Resolve(t.Context(), widgetGVK); err != nil {
				t.Error(err)
			}
		})
	}
	close(goOn)
	callers.Wait()
	if n := l.count("example.org/v1"); n != 1 {
		t.Errorf("want one request, got %d", n)
	}
}

func TestCallerWhoComesRightAfterAnAnswerAsksNothing(t *testing.T) {
	l := &lister{answer: document1(widget1)}
	r := NewResolver(ResolverOptions{Client: l})
	d, epoch := r.cached(widgetGVK)
	if d != nil {
		t.Fatal("want nothing to be known")
	}
	if _, err := r.Resolve(t.Context(), widgetGVK); err != nil {
		t.Fatal(err)
	}
	if r.askAgain(widgetGVK, epoch) == nil || l.count("example.org/v1") != 1 {
		t.Errorf("want one request, got %d", l.count("example.org/v1"))
	}
	r.ForgetAll()
	if r.askAgain(widgetGVK, epoch) == nil || l.count("example.org/v1") != 2 {
		t.Errorf("want what was forgotten to be requested, got %d requests", l.count("example.org/v1"))
	}
}

// TestAnswerFromBeforeAChangeIsNotKept changes what the server says while a request is under way.
func TestAnswerFromBeforeAChangeIsNotKept(t *testing.T) {
	goOn, requested := make(chan struct{}), make(chan struct{})
	l := &lister{answer: func(string) (*metav1.APIResourceList, error) {
		close(requested)
		<-goOn
		return &metav1.APIResourceList{}, nil
	}}
	r := NewResolver(ResolverOptions{Client: l})
	old := make(chan error)
	go func() {
		_, err := r.Resolve(t.Context(), widgetGVK)
		old <- err
	}()
	<-requested
	l.says(document1(widget1))
	r.Forget("example.org")
	if _, err := r.Resolve(t.Context(), widgetGVK); err != nil {
		t.Errorf("want a call after the change to return the new document, got %v", err)
	}
	close(goOn)
	if err := <-old; !IsNotServed(err) {
		t.Errorf("want a call before the change to return the old document, got %v", err)
	}
	if _, err := r.Resolve(t.Context(), widgetGVK); err != nil {
		t.Errorf("want the old answer not to replace the new one, got %v", err)
	}
	if n := l.count("example.org/v1"); n != 2 {
		t.Errorf("want two requests, got %d", n)
	}
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	many := make([]metav1.APIResource, 0, maxKindsOfDocument)
	for i := range maxKindsOfDocument {
		many = append(many, metav1.APIResource{Name: "widgets" + strconv.Itoa(i), Kind: "Widget" + strconv.Itoa(i), Verbs: all})
	}
	for name, tc := range map[string]struct {
		answer func(string) (*metav1.APIResourceList, error)
		most   int
	}{
		"Documents": {answer: document1(), most: maxDocuments},
		"Errors":    {answer: fails(errors.New("x")), most: maxDocuments},
		"Kinds":     {answer: document1(many...), most: maxKinds / maxKindsOfDocument},
	} {
		t.Run(name, func(t *testing.T) {
			fake := clocktesting.NewFakeClock(time.Now())
			r := NewResolver(ResolverOptions{Client: &lister{answer: tc.answer}, Clock: fake})
			gvk := func(i int) schema.GroupVersionKind {
				return schema.GroupVersionKind{Group: fmt.Sprintf("g%d.example.org", i), Version: "v1", Kind: "Widget0"}
			}
			for i := range tc.most + 10 {
				fake.Step(time.Millisecond)
				_, _ = r.Resolve(t.Context(), gvk(i))
			}
			if n := len(r.cache.byVersion); n != tc.most {
				t.Errorf("want %d documents, got %d", tc.most, n)
			}
			kinds := 0
			for _, d := range r.cache.byVersion {
				kinds += len(d.kinds)
			}
			if kinds != r.cache.kinds || kinds > maxKinds {
				t.Errorf("want at most %d kinds, got %d, counted as %d", maxKinds, kinds, r.cache.kinds)
			}
			if r.cache.byVersion[gvk(tc.most+9).GroupVersion()] == nil || r.cache.byVersion[gvk(0).GroupVersion()] != nil {
				t.Error("want the oldest to make room")
			}
		})
	}
}

// TestErrorsOfTheConnectionAreRecognised has the connection fail a request: who asks must be able to tell that from a
// cluster's error.
func TestErrorsOfTheConnectionAreRecognised(t *testing.T) {
	notConnected := errors.New("cluster is not connected")
	err := newShownError(fmt.Errorf("get: %w", &url.Error{Op: "Get", URL: "https://x", Err: notConnected}))
	if !errors.Is(err, notConnected) {
		t.Errorf("want the connection's error to be found in %v", err)
	}
	if err := newShownError(errors.New(strings.Repeat("x", 10_000))); errors.Unwrap(err) != nil || len(err.Error()) > maxText+len("...") {
		t.Errorf("want a long error to be cut, got %d bytes and %v", len(err.Error()), errors.Unwrap(err))
	}
}

// TestDiscoveryDocumentsAreCharged: without that a cluster could have the manager keep megabytes of names of kinds
// beside its share.
func TestDiscoveryDocumentsAreCharged(t *testing.T) {
	large := make([]metav1.APIResource, 1000)
	for i := range large {
		large[i] = metav1.APIResource{Name: fmt.Sprint("widgets", i), Kind: fmt.Sprint("Widget", i), Namespaced: true, Verbs: all}
	}
	kindOf := func(group string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Widget7"}
	}
	for name, tc := range map[string]struct {
		reason   string
		capacity int64
		kept     bool
	}{
		"Room":   {reason: "What there is room for is kept, and requested once.", capacity: 4 << 20, kept: true},
		"NoRoom": {reason: "What there is no room for is used and forgotten, so that it is requested again.", capacity: 64 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			b := limits.NewBudget(tc.capacity)
			account := b.Account("class", "cluster", nil)
			l := &lister{answer: document1(large...)}
			r := NewResolver(ResolverOptions{Client: l, Account: account})
			for range 2 {
				if _, err := r.Resolve(t.Context(), kindOf("a.example.org")); err != nil {
					t.Fatal(err)
				}
			}
			used, _ := b.Used()
			if (l.count("a.example.org/v1") == 1) != tc.kept || (used > 0) != tc.kept {
				t.Errorf("%s\nasked %d times, %d bytes charged", tc.reason, l.count("a.example.org/v1"), used)
			}
			r.Forget("a.example.org")
			if used, _ := b.Used(); used != 0 {
				t.Errorf("what is forgotten is not charged: %d bytes", used)
			}
		})
	}

	t.Run("GivesWay", func(t *testing.T) {
		// Two clusters of one class have half of it each. The first holds more, until the second asks.
		b := limits.NewBudget(1 << 20)
		l := &lister{answer: document1(large...)}
		r := NewResolver(ResolverOptions{Client: l, Account: b.Account("class", "first", nil)})
		for _, group := range []string{"a.example.org", "b.example.org"} {
			if _, err := r.Resolve(t.Context(), kindOf(group)); err != nil {
				t.Fatal(err)
			}
		}
		other := b.Account("class", "second", nil).Holder(nil)
		eventually(t, "the documents give way", func() error { return other.Hold(450 << 10) })
	})
}
