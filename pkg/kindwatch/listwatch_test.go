// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	gocmp "cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/masthead-dev/masthead/pkg/dynamicclient"
	"github.com/masthead-dev/masthead/pkg/guard"
	"github.com/masthead-dev/masthead/pkg/limits"
)

// TestListsComeInPagesThatAreNotTooLarge has a list of 1,200 objects, of which a page can have 100 without being
// refused.
func TestListsComeInPagesThatAreNotTooLarge(t *testing.T) {
	const total, fits = 1200, 100
	kind := Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: "configmaps"}
	k := newKindWatch(kind, &Options{Handler: func(Event) {}, PerKind: Unlimited, Total: Unlimited, Listed: -1}, &usage{})
	requests := 0
	get := func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
		requests++
		if o.ResourceVersion != "" || o.Limit <= 0 {
			t.Fatalf("a list must be requested in pages, not with %+v", o)
		}
		if o.Limit > fits {
			return nil, fmt.Errorf("cannot list: %w", &limits.Error{Subject: "list", Limit: limits.LimitBytes, Max: 1})
		}
		from, _ := strconv.Atoi(o.Continue)
		list := &unstructured.UnstructuredList{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "7"}}}
		to := min(total, from+int(o.Limit))
		for i := from; i < to; i++ {
			list.Items = append(list.Items, unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"namespace": "ns", "name": "n" + strconv.Itoa(i)},
			}})
		}
		if to < total {
			list.SetContinue(strconv.Itoa(to))
		}
		return list, nil
	}
	items, version, err := k.list(t.Context(), get)
	if err != nil || len(items) != total || version != "7" {
		t.Errorf("want %d objects at version 7, got %d at %s, %v", total, len(items), version, err)
	}
	if want := 1 + (total+61)/62; requests != want {
		t.Errorf("want a page that is refused and then smaller ones, %d requests, got %d", want, requests)
	}
	// What is too large alone is an error.
	_, _, err = k.list(t.Context(), func(context.Context, metav1.ListOptions) (runtime.Object, error) {
		return nil, &limits.Error{Subject: "list", Limit: limits.LimitBytes, Max: 1}
	})
	if err == nil {
		t.Error("an object that is too large must be an error")
	}
}

// script is a server that answers each request with the next of its answers.
type script struct {
	dynamicclient.Objects
	dynamic.NamespaceableResourceInterface
	answers  []answer
	requests []string
}

// answer is that to a watch: events and how they end, by a panic without end, or an error instead. One to a list is its
// objects.
type answer struct {
	events []watch.Event
	end    error
	refuse error
	list   *unstructured.UnstructuredList
}

// errDone ends what is tested when the script has no more answers.
var errDone = errors.New("the script is over")

func (s *script) next(request string) answer {
	if len(s.answers) == 0 {
		return answer{refuse: errDone}
	}
	s.requests = append(s.requests, request)
	next := s.answers[0]
	s.answers = s.answers[1:]
	return next
}

func (s *script) Stream(_ context.Context, _ schema.GroupVersionResource, _ string, o metav1.ListOptions) (watch.Decoder, error) {
	request := "watch@" + o.ResourceVersion
	if o.SendInitialEvents != nil {
		request = "stream"
	}
	a := s.next(request)
	return &a, a.refuse
}

func (s *script) Resource(schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return s
}
func (s *script) Namespace(string) dynamic.ResourceInterface { return s }

func (s *script) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	a := s.next("list")
	return a.list.DeepCopy(), a.refuse // Pages are consumed.
}

func (a *answer) Decode() (watch.EventType, runtime.Object, error) {
	if len(a.events) == 0 && a.end == nil {
		panic("of a test")
	}
	if len(a.events) == 0 {
		return "", nil, a.end
	}
	e := a.events[0]
	a.events = a.events[1:]
	return e.Type, e.Object, nil
}

func (a *answer) Close() {}

// TestListAndWatch is how a kind is followed through what a server may answer.
func TestListAndWatch(t *testing.T) {
	event := func(kind watch.EventType, name, version string) watch.Event {
		return watch.Event{Type: kind, Object: object(name, name, version)}
	}
	listed := event(watch.Bookmark, "", "5")
	listed.Object.(metav1.Object).SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	// The first answer to each case, unless it is about the first answer.
	synced := answer{events: []watch.Event{event(watch.Added, "a", "4"), listed, event(watch.Modified, "a", "6")}, end: io.EOF}
	failed := func(err *apierrors.StatusError) watch.Event {
		return watch.Event{Type: watch.Error, Object: &err.ErrStatus}
	}
	expired := apierrors.NewResourceExpired("compacted")
	unsupported := answer{refuse: apierrors.NewBadRequest("sendInitialEvents is forbidden")}
	pages := answer{list: &unstructured.UnstructuredList{
		Object: map[string]any{"metadata": map[string]any{"resourceVersion": "7"}}, Items: []unstructured.Unstructured{*object("b", "b", "2")},
	}}
	tooLarge := fmt.Errorf("cannot read: %w", &limits.Error{Subject: "event", Limit: limits.LimitBytes, Max: 1})
	again := answer{refuse: errDone}
	resumes := []string{"stream", "watch@6", "watch@6"}
	lists := []string{"stream", "watch@6", "stream"}

	for name, tc := range map[string]struct {
		reason  string
		answers []answer
		want    []string
		// have are the objects that are known then, and state is how far they are; StateSynced unless it is given.
		have  string
		state State
	}{
		"Streams": {
			reason: "The watch that lists goes on, and the next one begins where it ended.", answers: []answer{synced, again},
			want: []string{"stream", "watch@6"}, have: "a@6",
		},
		"ChangesWhileItLists": {
			reason: "A list that is streamed ends with what is there.",
			answers: []answer{{events: []watch.Event{
				event(watch.Added, "a", "1"), event(watch.Added, "b", "2"), event(watch.Bookmark, "", "2"),
				event(watch.Modified, "a", "3"), event(watch.Deleted, "b", "4"), listed, event(watch.Bookmark, "", "6"),
			}, end: io.EOF}, again},
			want: []string{"stream", "watch@6"}, have: "a@3",
		},
		"DoesNotStream": {reason: "Old API servers list in pages.", answers: []answer{unsupported, pages, again}, want: []string{"stream", "list", "watch@7"}, have: "b@2"},
		"EndsEarly": {
			reason:  "Half a list is none, and a server that ends streams early may send pages.",
			answers: []answer{{events: synced.events[:1], end: io.ErrUnexpectedEOF}, pages, again}, want: []string{"stream", "list", "watch@7"}, have: "b@2",
		},
		"StreamTooLarge": {
			reason: "What was refused is not requested in another way.", answers: []answer{{events: synced.events[:1], end: tooLarge}},
			want: []string{"stream"}, state: StateTooLarge,
		},
		"StreamUnanswered": {
			reason: "Nor is a server that does not answer.", answers: []answer{{refuse: syscall.ECONNREFUSED}},
			want: []string{"stream"}, state: StateSyncing,
		},
		"Bookmark": {
			reason:  "A bookmark moves the place where the next watch begins.",
			answers: []answer{synced, {events: []watch.Event{event(watch.Bookmark, "", "90")}, end: io.EOF}, again},
			want:    []string{"stream", "watch@6", "watch@90"}, have: "a@6",
		},
		"Deleted": {
			reason:  "What is deleted is not known any more.",
			answers: []answer{synced, {events: []watch.Event{event(watch.Deleted, "a", "8")}, end: io.EOF}, again}, want: []string{"stream", "watch@6", "watch@8"},
		},
		"Lost":             {reason: "A lost connection is an end.", answers: []answer{synced, {events: []watch.Event{event(watch.Added, "b", "6")}, end: io.ErrUnexpectedEOF}, again}, want: resumes, have: "a@6 b@6"},
		"Refused":          {reason: "A server that restarts knows the version.", answers: []answer{synced, {refuse: syscall.ECONNREFUSED}, again}, want: resumes, have: "a@6"},
		"Busy":             {reason: "One that is busy, too.", answers: []answer{synced, {refuse: apierrors.NewTooManyRequests("", 1)}, again}, want: resumes, have: "a@6"},
		"BusyInTheWatch":   {reason: "It may say so later.", answers: []answer{synced, {events: []watch.Event{failed(apierrors.NewTooManyRequests("", 1))}}, again}, want: resumes, have: "a@6"},
		"Unavailable":      {reason: "And one that fails.", answers: []answer{synced, {refuse: apierrors.NewInternalError(errDone)}, again}, want: resumes, have: "a@6"},
		"Future":           {reason: "The cluster was restored from a backup.", answers: []answer{synced, {refuse: apierrors.NewTimeoutError("Too large resource version", 1)}, again}, want: lists, have: "a@6"},
		"Unreadable":       {reason: "An object that cannot be read would come again.", answers: []answer{synced, {events: []watch.Event{failed(apierrors.NewInternalError(errDone))}}, again}, want: lists, have: "a@6"},
		"Expired":          {reason: "The version is too old.", answers: []answer{synced, {refuse: expired}, again}, want: lists, have: "a@6"},
		"ExpiredInTheList": {reason: "It may say so in an event.", answers: []answer{synced, {events: []watch.Event{failed(expired)}}, again}, want: lists, have: "a@6"},
		"Undecodable":      {reason: "The same event would come again.", answers: []answer{synced, {end: errors.New("cannot decode")}, again}, want: lists, have: "a@6"},
		"Short":            {reason: "A watch that ends at once may be because of its version.", answers: []answer{synced, {end: io.EOF}, again}, want: lists, have: "a@6"},
		"TooLarge":         {reason: "Nothing is kept of what is too large.", answers: []answer{synced, {end: tooLarge}, again}, want: lists, state: StateTooLarge},
		"Forbidden":        {reason: "What may not be read is not known.", answers: []answer{synced, {refuse: apierrors.NewForbidden(schema.GroupResource{}, "", nil)}, again}, want: lists, state: StateForbidden},
		"NoVersion": {
			reason: "A watch from no version begins with all objects, whose versions say nothing of others.",
			answers: []answer{
				unsupported, {list: &unstructured.UnstructuredList{}},
				{events: []watch.Event{event(watch.Added, "a", "9"), event(watch.Added, "b", "3")}, end: io.EOF},
				{events: []watch.Event{event(watch.Added, "c", "4"), event(watch.Modified, "a", "10")}, end: io.EOF}, again,
			},
			want: []string{"stream", "list", "watch@", "watch@", "watch@10"}, have: "a@10 b@3 c@4",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &script{answers: slices.Clone(tc.answers)}
			k := newKindWatch(configMaps, &Options{
				Client: s, Clock: clocktesting.NewFakeClock(time.Now()), Handler: func(Event) {}, PerKind: Unlimited, Total: Unlimited, Listed: -1,
			}, &usage{})
			defer k.end()
			for {
				err := k.attempt(t.Context(), func() {})
				if errors.Is(err, errDone) {
					break
				}
				k.failed(err)
				k.park(err)
			}
			if diff := cmp.Diff(tc.want, s.requests); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got, message := k.currentState(); got != gocmp.Or(tc.state, StateSynced) {
				t.Errorf("%s got state %s: %s", tc.reason, got, message)
			}
			var have []string
			items, _ := k.store.list()
			for _, i := range items {
				have = append(have, i.Key.Name+"@"+i.ResourceVersion)
			}
			slices.Sort(have)
			if got := strings.Join(have, " "); got != tc.have {
				t.Errorf("%s want %q, got %q", tc.reason, tc.have, got)
			}
		})
	}
}

// TestPanicOfADecoderEndsTheAttempt: the caller of a stream decodes, under its guard.
func TestPanicOfADecoderEndsTheAttempt(t *testing.T) {
	var panics atomic.Int32
	s := &script{answers: []answer{{}}}
	k := newKindWatch(configMaps, &Options{
		Client: s, Clock: clocktesting.NewFakeClock(time.Now()), Handler: func(Event) {}, PerKind: Unlimited, Total: Unlimited, Listed: -1,
		Guard: guard.New(func(*guard.Panic) { panics.Add(1) }),
	}, &usage{})
	defer k.end()
	if err := k.attempt(t.Context(), func() {}); !panicked(err) || panics.Load() != 1 {
		t.Errorf("want the panic as an error, got %v", err)
	}
}

// TestNothingResumesWhatIsNotKept: between two attempts, another cluster displaces what is kept, or a consumer wants
// everything again.
func TestNothingResumesWhatIsNotKept(t *testing.T) {
	for name, meanwhile := range map[string]func(k *kindWatch){
		"Displaced": func(k *kindWatch) { k.evict(limits.ErrBusy) },
		"Relist":    func(k *kindWatch) { k.endAttempt(errRelist) },
	} {
		t.Run(name, func(t *testing.T) {
			pages := answer{list: &unstructured.UnstructuredList{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "7"}}}}
			s := &script{answers: []answer{{refuse: apierrors.NewBadRequest("")}, pages, {refuse: syscall.ECONNREFUSED}, {refuse: syscall.ECONNREFUSED}}}
			k := newKindWatch(configMaps, &Options{
				Client: s, Clock: clocktesting.NewFakeClock(time.Now()), Handler: func(Event) {}, PerKind: Unlimited, Total: Unlimited, Listed: -1,
			}, &usage{})
			defer k.end()
			_ = k.attempt(t.Context(), func() {})
			if !k.resumes() {
				t.Fatal("want the watch to go on after a server that did not answer")
			}
			meanwhile(k)
			_ = k.attempt(t.Context(), func() {})
			if diff := cmp.Diff([]string{"stream", "list", "watch@7", "stream"}, s.requests); diff != "" {
				t.Errorf("want a list (-want +got):\n%s", diff)
			}
		})
	}
}
