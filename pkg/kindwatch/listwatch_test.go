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

	"golang.org/x/net/http2"
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
	requests := 0
	list := func(o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
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
	watchOf := func(list listFunc) *kindWatch {
		return newKindWatch(kind, &Options{
			Client: &script{list: list}, Clock: clocktesting.NewFakeClock(time.Now()), Handler: func(Event) {},
			PerKind: Unlimited, Total: Unlimited, Listed: -1,
		}, &usage{})
	}
	items, version, err := watchOf(list).listPages(t.Context())
	if err != nil || len(items) != total || version != "7" {
		t.Errorf("want %d objects at version 7, got %d at %s, %v", total, len(items), version, err)
	}
	if want := 1 + (total+61)/62; requests != want {
		t.Errorf("want a page that is refused and then smaller ones, %d requests, got %d", want, requests)
	}
	// What is too large alone is an error.
	_, _, err = watchOf(func(metav1.ListOptions) (*unstructured.UnstructuredList, error) {
		return nil, &limits.Error{Subject: "list", Limit: limits.LimitBytes, Max: 1}
	}).listPages(t.Context())
	if err == nil {
		t.Error("an object that is too large must be an error")
	}
}

type listFunc func(metav1.ListOptions) (*unstructured.UnstructuredList, error)

// script is a server that answers each request with the next of its answers, or all lists with list.
type script struct {
	dynamicclient.Objects
	dynamicclient.Metadata
	dynamic.NamespaceableResourceInterface
	list     listFunc
	answers  []answer
	requests []string
	open     int
	clock    *clocktesting.FakeClock
}

// answer is that to a watch: events and how it ends after a time, by a panic without end, or an error instead. One to a
// list is its objects.
type answer struct {
	events []watch.Event
	after  time.Duration
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
	if o.SendInitialEvents != nil && o.ResourceVersionMatch == metav1.ResourceVersionMatchNotOlderThan {
		request = "stream"
	}
	limit := time.Duration(*o.TimeoutSeconds) * time.Second
	if !o.AllowWatchBookmarks || limit < minWatch || limit > maxWatch || o.FieldSelector != configMaps.FieldSelector {
		return nil, fmt.Errorf("no request of a watch: %+v", o)
	}
	a := s.next(request)
	if a.refuse != nil {
		return nil, a.refuse
	}
	s.open++
	return &stream{answer: a, server: s}, nil
}

func (s *script) Resource(schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return s
}
func (s *script) Namespace(string) dynamic.ResourceInterface { return s }

func (s *script) List(_ context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	if s.list != nil {
		return s.list(o)
	}
	a := s.next("list")
	return a.list.DeepCopy(), a.refuse // Pages are consumed.
}

// stream is a watch that the script answers.
type stream struct {
	answer
	server *script
}

func (s *stream) Decode() (watch.EventType, runtime.Object, error) {
	if len(s.events) == 0 && s.end == nil {
		panic("of a test")
	}
	if len(s.events) == 0 {
		s.server.clock.Step(s.after)
		return "", nil, s.end
	}
	e := s.events[0]
	s.events = s.events[1:]
	return e.Type, e.Object, nil
}

func (s *stream) Close() { s.server.open-- }

// scripted returns the watch of a kind whose server answers so.
func scripted(t *testing.T, answers []answer, change ...func(*Options)) (*kindWatch, *script) {
	t.Helper()
	s := &script{answers: slices.Clone(answers), clock: clocktesting.NewFakeClock(time.Now())}
	o := &Options{Client: s, Clock: s.clock, Handler: func(Event) {}, PerKind: Unlimited, Total: Unlimited, Listed: -1}
	for _, c := range change {
		c(o)
	}
	k := newKindWatch(configMaps, o, &usage{})
	t.Cleanup(func() {
		k.end()
		if s.open != 0 {
			t.Errorf("want every watch to be closed, %d are not", s.open)
		}
	})
	return k, s
}

// TestListAndWatch is how a kind is followed through what a server may answer.
func TestListAndWatch(t *testing.T) {
	event := func(kind watch.EventType, name, version string) watch.Event {
		return watch.Event{Type: kind, Object: object(name, name, version)}
	}
	listed := event(watch.Bookmark, "", "5")
	listed.Object.(metav1.Object).SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	// The first answer to each case, unless it is about the first answer.
	synced := answer{events: []watch.Event{event(watch.Added, "a", "4"), listed, event(watch.Modified, "a", "6")}, end: io.EOF, after: shortWatch}
	failed := func(err *apierrors.StatusError) watch.Event {
		return watch.Event{Type: watch.Error, Object: &err.ErrStatus}
	}
	expired := apierrors.NewResourceExpired("compacted")
	unsupported := answer{refuse: apierrors.NewBadRequest("sendInitialEvents is forbidden")}
	pages := answer{list: &unstructured.UnstructuredList{
		Object: map[string]any{"metadata": map[string]any{"resourceVersion": "7"}}, Items: []unstructured.Unstructured{*object("b", "b", "2")},
	}}
	unversioned := answer{list: &unstructured.UnstructuredList{}}
	tooLarge := fmt.Errorf("cannot read: %w", &limits.Error{Subject: "event", Limit: limits.LimitBytes, Max: 1})
	again := answer{refuse: errDone}
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", nil)
	added := []watch.Event{event(watch.Added, "b", "6")}
	resumes := []string{"stream", "watch@6", "watch@6"}
	lists := []string{"stream", "watch@6", "stream"}

	for name, tc := range map[string]struct {
		reason  string
		answers []answer
		want    []string
		// have are the objects that are known then, and state is how far they are; StateSynced unless it is given.
		have  string
		state State
		// backsOff is how many attempts fail, if that is given.
		backsOff int
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
		"Quiet":      {reason: "A watch without events that goes on for a while is no failure.", answers: []answer{synced, {after: shortWatch, end: io.EOF}, again}, want: resumes, have: "a@6"},
		"Lost":       {reason: "A lost connection is an end.", answers: []answer{synced, {events: added, end: io.ErrUnexpectedEOF}, again}, want: resumes, have: "a@6 b@6"},
		"LostHTTP2":  {reason: "Of HTTP/2, too.", answers: []answer{synced, {events: added, end: errors.New("http2: client connection lost")}, again}, want: resumes, have: "a@6 b@6"},
		"Refused":    {reason: "A server that restarts knows the version.", answers: []answer{synced, {refuse: syscall.ECONNREFUSED}, again}, want: resumes, have: "a@6"},
		"Reset":      {reason: "A connection that is reset says nothing of the version.", answers: []answer{synced, {refuse: syscall.ECONNRESET}, again}, want: resumes, have: "a@6"},
		"TimedOut":   {reason: "Nor does a request without an answer.", answers: []answer{synced, {refuse: context.DeadlineExceeded}, again}, want: resumes, have: "a@6"},
		"Busy":       {reason: "A busy server knows the version.", answers: []answer{synced, {refuse: apierrors.NewTooManyRequests("", 1)}, again}, want: resumes, have: "a@6"},
		"BusyLater":  {reason: "A server may say in an event that it is busy.", answers: []answer{synced, {events: []watch.Event{failed(apierrors.NewTooManyRequests("", 1))}}, again}, want: resumes, have: "a@6"},
		"Failing":    {reason: "A server that fails knows the version.", answers: []answer{synced, {refuse: apierrors.NewInternalError(errDone)}, again}, want: resumes, have: "a@6"},
		"Overloaded": {reason: "So does one that cannot serve now.", answers: []answer{synced, {refuse: apierrors.NewServiceUnavailable("")}, again}, want: resumes, have: "a@6"},
		"Unversioned": {
			reason:  "An event without a version, or with one that no API server uses, does not move the place.",
			answers: []answer{synced, {events: []watch.Event{event(watch.Modified, "a", ""), event(watch.Bookmark, "", strings.Repeat("9", maxVersion+1))}, end: io.EOF}, again},
			want:    resumes, have: "a@",
		},
		"Future":       {reason: "The cluster was restored from a backup.", answers: []answer{synced, {refuse: apierrors.NewTimeoutError("Too large resource version", 1)}, again}, want: lists, have: "a@6"},
		"Unreadable":   {reason: "An object that cannot be read would come again.", answers: []answer{synced, {events: []watch.Event{failed(apierrors.NewInternalError(errDone))}}, again}, want: lists, have: "a@6"},
		"Expired":      {reason: "The version is too old.", answers: []answer{synced, {refuse: expired}, again}, want: lists, have: "a@6"},
		"ExpiredLater": {reason: "A server may say in an event that the version is too old.", answers: []answer{synced, {events: []watch.Event{failed(expired)}}, again}, want: lists, have: "a@6"},
		"Undecodable":  {reason: "An event that cannot be decoded would come again.", answers: []answer{synced, {end: errors.New("cannot decode")}, again}, want: lists, have: "a@6"},
		"Short":        {reason: "A watch that ends at once may be because of its version.", answers: []answer{synced, {end: io.EOF}, again}, want: lists, have: "a@6"},
		"TooLarge":     {reason: "Nothing is kept of what is too large.", answers: []answer{synced, {end: tooLarge}, again}, want: lists, state: StateTooLarge},
		"Forbidden":    {reason: "What may not be read is not known.", answers: []answer{synced, {refuse: forbidden}, again}, want: lists, state: StateForbidden},
		"FailsInTheStream": {
			reason:  "An error in a list that is streamed may not be in pages.",
			answers: []answer{{events: []watch.Event{synced.events[0], failed(apierrors.NewInternalError(errDone))}}, pages, again},
			want:    []string{"stream", "list", "watch@7"}, have: "b@2",
		},
		"BusyInTheStream": {
			reason: "A busy server gets no second request.", answers: []answer{{events: []watch.Event{failed(apierrors.NewTooManyRequests("", 1))}}},
			want: []string{"stream"}, state: StateSyncing,
		},
		"Impossible": {
			reason: "What cannot be an object of the kind is left out.", answers: []answer{{events: []watch.Event{event(watch.Added, "../a", "1"), listed}, end: io.EOF, after: shortWatch}, again},
			want: []string{"stream", "watch@5"},
		},
		"Table": {
			reason: "What is no list of objects is none.", answers: []answer{unsupported, {list: &unstructured.UnstructuredList{Object: map[string]any{"kind": "Table"}}}},
			want: []string{"stream", "list"}, state: StateSyncing,
		},
		"ForbiddenAtFirst": {
			reason: "Neither way may be used.", answers: []answer{{refuse: forbidden}, {refuse: forbidden}},
			want: []string{"stream", "list"}, state: StateForbidden,
		},
		"LongVersion": {
			reason: "A version that no API server uses is none.", want: []string{"stream", "list", "watch@"},
			answers: []answer{unsupported, {list: &unstructured.UnstructuredList{Object: map[string]any{"metadata": map[string]any{"resourceVersion": strings.Repeat("9", maxVersion+1)}}}}, again},
		},
		"NoVersion": {
			reason:  "A watch without a version would not report what was deleted before it.",
			answers: []answer{unsupported, unversioned, {events: []watch.Event{event(watch.Added, "a", "9"), event(watch.Added, "b", "3")}, end: io.EOF, after: shortWatch}, again},
			want:    []string{"stream", "list", "watch@", "stream"}, have: "a@9 b@3",
		},
		"NoVersionAtFirst": {
			reason:  "It begins with all objects, in any order. An event about a change has a version.",
			answers: []answer{unsupported, unversioned, {events: []watch.Event{event(watch.Added, "a", "9"), event(watch.Added, "b", "3"), event(watch.Modified, "b", "10")}, end: io.EOF, after: shortWatch}, again},
			want:    []string{"stream", "list", "watch@", "watch@10"}, have: "a@9 b@10",
		},
		"ShortWithEvents": {
			reason:  "A server that ends each watch after an event gets the next after a back-off.",
			answers: []answer{synced, {events: added, end: io.EOF}, again}, want: resumes, have: "a@6 b@6", backsOff: 1,
		},
		"CutByAProxy": {
			reason:  "A stream that a proxy resets is an end.",
			answers: []answer{synced, {events: added, end: http2.StreamError{Code: http2.ErrCodeInternal}, after: shortWatch}, again}, want: resumes, have: "a@6 b@6",
		},
		"TextOfAnAnswer": {
			reason:  "An answer is no end, with words like those of a lost connection, too.",
			answers: []answer{synced, {events: []watch.Event{failed(apierrors.NewInternalError(errors.New("connection reset by peer")))}}, again}, want: lists, have: "a@6",
		},
		"RepeatedPages": {
			reason: "Pages can repeat a name.", want: []string{"stream", "list", "list", "watch@7"}, have: "b@2",
			answers: []answer{unsupported, {list: &unstructured.UnstructuredList{
				Object: map[string]any{"metadata": map[string]any{"continue": "x"}}, Items: []unstructured.Unstructured{*object("b", "b", "1")},
			}}, pages, again},
		},
	} {
		t.Run(name, func(t *testing.T) {
			k, s := scripted(t, tc.answers)
			failures := 0
			for {
				err := k.attempt(t.Context(), func() {})
				if errors.Is(err, errDone) {
					break
				}
				failures++
				k.failed(err)
				k.park(err)
			}
			if tc.backsOff != 0 && failures != tc.backsOff {
				t.Errorf("%s want %d back-offs, got %d", tc.reason, tc.backsOff, failures)
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
	k, _ := scripted(t, []answer{{}}, func(o *Options) { o.Guard = guard.New(func(*guard.Panic) { panics.Add(1) }) })
	if err := k.attempt(t.Context(), func() {}); !panicked(err) || panics.Load() != 1 {
		t.Errorf("want the panic as an error, got %v", err)
	}
}

// TestNothingResumesWhatIsNotKept: between two attempts, another cluster displaces what is kept, or a consumer wants
// everything again.
func TestNothingResumesWhatIsNotKept(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		meanwhile func(k *kindWatch)
	}{
		"Displaced": {"What was displaced is listed.", func(k *kindWatch) { k.evict(limits.ErrBusy) }},
		"Stale":     {"A server that refuses to resume may still list.", func(k *kindWatch) { k.setState(StateStale, "") }},
		"Relist":    {"A consumer wants everything again.", func(k *kindWatch) { k.endAttempt(errRelist) }},
	} {
		t.Run(name, func(t *testing.T) {
			pages := answer{list: &unstructured.UnstructuredList{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "7"}}}}
			k, s := scripted(t, []answer{{refuse: apierrors.NewBadRequest("")}, pages, {refuse: syscall.ECONNREFUSED}, {refuse: syscall.ECONNREFUSED}})
			_ = k.attempt(t.Context(), func() {})
			if !k.resumes() || k.delay(time.Hour) != maxResumeBackoff {
				t.Fatal("want the watch to go on soon after a server that did not answer")
			}
			tc.meanwhile(k)
			if got := k.delay(time.Hour); got != time.Hour {
				t.Errorf("%s want a list to back off as long as others, got %s", tc.reason, got)
			}
			_ = k.attempt(t.Context(), func() {})
			if diff := cmp.Diff([]string{"stream", "list", "watch@7", "stream"}, s.requests); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
