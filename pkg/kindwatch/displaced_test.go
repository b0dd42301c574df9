// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/masthead-dev/masthead/pkg/budget"
)

// TestAKindThatIsDisplacedBetweenAttemptsIsTold is about a synced kind whose watch has just ended. It was dropped
// without a word, so that nobody looked again when it was listed the next time.
func TestAKindThatIsDisplacedBetweenAttemptsIsTold(t *testing.T) {
	r := &recorder{}
	k := newKindWatch(configMaps, &Options{Handler: r.handle, Clock: clocktesting.NewFakeClock(time.Now()), PerKind: Unlimited, Total: Unlimited, Listed: -1}, &usage{})
	for range 2 {
		if err := k.store.Replace([]any{object("a", "1", "5")}, "5"); err != nil {
			t.Fatal(err)
		}
		k.yield(budget.ErrBusy)
	}
	want := []State{StateSynced, StateTooLarge, StateSynced, StateTooLarge}
	if got := r.states(); !slices.Equal(got, want) {
		t.Errorf("Want everybody to be told of %v, got %v.", want, got)
	}
	if _, message := k.currentState(); message == "" {
		t.Error("Want the state to say why.")
	}

	k.setState(StateNotServed, "it is not served")
	k.yield(budget.ErrBusy)
	if s, _ := k.currentState(); s != StateNotServed {
		t.Errorf("A kind that has nothing to be displaced from stays as it is, got %s.", s)
	}
}

// TestRetriesAreRateLimited is about a cluster that changes a definition all the time, and does not serve the kind.
// Each change led to an attempt at once.
func TestRetriesAreRateLimited(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			asked.Add(1)
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
	perAttempt := asked.Load()
	for n := range int64(pokesAtOnce) {
		eventually(t, "a retry is obeyed", func() error {
			retry()
			return atLeast(asked.Load(), (n+2)*perAttempt)
		})
	}
	k := w.kind(configMaps)
	eventually(t, "a retry is taken and not obeyed", func() error {
		if len(k.poked) > 0 {
			return nil
		}
		retry()
		return errors.New("it was not")
	})
	before := asked.Load()
	for range 100 {
		retry()
	}
	if got := asked.Load(); got > (pokesAtOnce+1)*perAttempt {
		t.Errorf("Want %d attempts, got %d requests, %d of them before the last pokes.", pokesAtOnce+1, got, before)
	}
	eventually(t, "a retry is obeyed when the shortest back-off is over", func() error {
		clk.Step(time.Minute)
		retry()
		return atLeast(asked.Load(), (pokesAtOnce+2)*perAttempt)
	})
}

func atLeast(got, want int64) error {
	if got < want {
		return fmt.Errorf("want at least %d, got %d", want, got)
	}
	return nil
}
