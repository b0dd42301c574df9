// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/masthead-dev/masthead/pkg/guard"
	"github.com/masthead-dev/masthead/pkg/limits"
)

// TestAKindThatIsDisplacedBetweenAttemptsIsReported is about a synced kind whose watch has just ended. It was dropped
// without an event, so that no handler looked again when it was listed the next time.
func TestAKindThatIsDisplacedBetweenAttemptsIsReported(t *testing.T) {
	r := &recorder{}
	k := newKindWatch(configMaps, &Options{Handler: r.handle, Clock: clocktesting.NewFakeClock(time.Now()), PerKind: Unlimited, Total: Unlimited, Listed: -1}, &usage{})
	for range 2 {
		if err := k.store.replace(k.store.itemsFor(object("a", "1", "5")), "5"); err != nil {
			t.Fatal(err)
		}
		k.evict(limits.ErrBusy)
	}
	want := []State{StateSynced, StateTooLarge, StateSynced, StateTooLarge}
	if got := r.states(); !slices.Equal(got, want) {
		t.Errorf("Want the states %v to be reported, got %v.", want, got)
	}
	if _, message := k.currentState(); message == "" {
		t.Error("Want the state to say why.")
	}

	k.setState(StateNotServed, "it is not served")
	k.evict(limits.ErrBusy)
	if s, _ := k.currentState(); s != StateNotServed {
		t.Errorf("A kind that has nothing to be displaced from stays as it is, got %s.", s)
	}
}

// TestRetriesAreRateLimited is about a cluster that changes a definition all the time, and does not serve the kind.
// Each change led to an attempt at once.
func TestRetriesAreRateLimited(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			requests.Add(1)
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	clk := clocktesting.NewFakeClock(time.Now())
	w, _ := start(t, &rest.Config{Host: server.URL, QPS: -1}, func(Event) {}, func(o *Options) {
		o.Clock, o.MinBackoff, o.MaxBackoff = clk, time.Minute, time.Hour
	})
	w.Set("test", configMaps)
	eventually(t, "the kind is parked", inState(w, configMaps, StateNotServed))
	retry := func() { w.Retry(configMaps.GroupResource()) }
	perAttempt := requests.Load()
	for n := range int64(pokesAtOnce) {
		eventually(t, "a retry is obeyed", func() error {
			retry()
			return atLeast(requests.Load(), (n+2)*perAttempt)
		})
	}
	k := w.kind(configMaps)
	eventually(t, "a retry is taken and not obeyed", func() error {
		if len(k.woken) > 0 {
			return nil
		}
		retry()
		return errors.New("it was not")
	})
	before := requests.Load()
	for range 100 {
		retry()
	}
	if got := requests.Load(); got > (pokesAtOnce+1)*perAttempt {
		t.Errorf("Want %d attempts, got %d requests, %d of them before the last pokes.", pokesAtOnce+1, got, before)
	}
	eventually(t, "a retry is obeyed when the shortest back-off is over", func() error {
		clk.Step(time.Minute)
		retry()
		return atLeast(requests.Load(), (pokesAtOnce+2)*perAttempt)
	})
}

func atLeast(got, want int64) error {
	if got < want {
		return fmt.Errorf("want at least %d, got %d", want, got)
	}
	return nil
}

// TestPanicOfAHandlerEndsNoProcess has a handler that panics on an event of any cause: a list, the time without one,
// and the budget between two attempts.
func TestPanicOfAHandlerEndsNoProcess(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Now())
	var panics atomic.Int64
	memory := limits.NewBudget(1 << 20)
	o := &Options{
		Clock: clk, PerKind: Unlimited, Total: Unlimited, Listed: -1, StaleAfter: time.Minute,
		Guard:   guard.New(func(*guard.Panic) { panics.Add(1) }),
		Account: memory.Account("default", "greedy", nil),
		Handler: func(Event) { panic("of a test") },
	}
	k := newKindWatch(configMaps, o, &usage{})
	panicked := func(what string, n int64) {
		t.Helper()
		eventually(t, what, func() error { return atLeast(panics.Load(), n) })
	}
	list := make([]runtime.Object, 0, 40)
	for n := range cap(list) {
		big := object(fmt.Sprint("a", n), fmt.Sprint(n), "5")
		big.SetAnnotations(map[string]string{"big": strings.Repeat("x", 16<<10)})
		list = append(list, big)
	}
	if err := k.store.replace(k.store.itemsFor(list...), "5"); err != nil {
		t.Fatal(err)
	}
	panicked("handling a list", 1)

	before := panics.Load()
	k.unseen(t.Context())
	clk.Step(2 * time.Minute)
	panicked("being stale", before+1)
	k.seen()

	before = panics.Load()
	if err := memory.Account("default", "modest", nil).Holder(nil).Hold(480 << 10); err != nil && !errors.Is(err, limits.ErrBusy) {
		t.Fatal(err)
	}
	panicked("making room", before+1)
}

// TestPanicOfAHandlerSilencesTheAttempt has a handler that panics for each object of a list.
func TestPanicOfAHandlerSilencesTheAttempt(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" {
			w.WriteHeader(http.StatusBadRequest) // It does not stream lists.
			return
		}
		_, _ = w.Write([]byte(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[` +
			`{"metadata":{"namespace":"default","name":"a","uid":"1"}},{"metadata":{"namespace":"default","name":"b","uid":"2"}}]}`))
	}))
	defer server.Close()
	var added, panics atomic.Int32
	w, _ := start(t, &rest.Config{Host: server.URL, QPS: -1}, func(e Event) {
		if e.Type == Added {
			added.Add(1)
			panic("of a test")
		}
	}, func(o *Options) {
		o.Guard, o.MinBackoff, o.MaxBackoff = guard.New(func(*guard.Panic) { panics.Add(1) }), time.Hour, time.Hour
	})
	w.Set("test", configMaps)
	eventually(t, "the attempt has ended", func() error {
		if _, message := w.State(configMaps); !strings.Contains(message, "unexpectedly") {
			return errors.New(message)
		}
		return nil
	})
	if added.Load() != 1 || panics.Load() != 1 {
		t.Errorf("Want one object to be reported, got %d and %d panics.", added.Load(), panics.Load())
	}
}

// TestKindSyncsAgainAfterAPanic panics after the kind was synced, which leads back to where it began.
func TestKindSyncsAgainAfterAPanic(t *testing.T) {
	var broken atomic.Bool
	k := newKindWatch(configMaps, &Options{
		Clock: clocktesting.NewFakeClock(time.Now()), PerKind: Unlimited, Total: Unlimited, Listed: -1,
		Handler: func(Event) {
			if broken.Load() {
				panic("of a test")
			}
		},
	}, &usage{})
	for range 2 {
		if err := k.store.replace(k.store.itemsFor(object("a", "1", "5")), "5"); err != nil {
			t.Fatal(err)
		}
		if s, _ := k.currentState(); s != StateSynced {
			t.Fatalf("Want it synced, got %s.", s)
		}
		broken.Store(true)
		k.park(&guard.Panic{})
		broken.Store(false)
	}
}
