// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/internal/test/hostile"
	"github.com/masthead-dev/masthead/pkg/guard"
)

// TestProgressNamesWhatIsWrong has kinds of API servers that never get anywhere. Before, only the Watcher's own log
// reported them.
func TestProgressNamesWhatIsWrong(t *testing.T) {
	cases := map[string]struct {
		reason string
		want   []Cause
	}{
		"drip":             {"A list of one byte a second does not come to its end.", []Cause{CauseListUnfinished}},
		"silent-streams":   {"A stream that says nothing is no list.", []Cause{CauseListUnfinished}},
		"retry-after":      {"A server that says to come back later has not answered.", []Cause{CauseListUnfinished, CauseListRejected}},
		"retry-at-once":    {"A server that says to come back at once has answered with an error.", []Cause{CauseListUnfinished, CauseListRejected}},
		"truncated":        {"A list that ends in the middle is none.", []Cause{CauseListTruncated, CauseListFailed}},
		"malformed-events": {"A watch that cannot be parsed ends after each list.", []Cause{CauseWatchFailing}},
		"ending-watches":   {"A watch that is ended at once is no watch.", []Cause{CauseWatchFailing}},
		"error-events":     {"A watch that says nothing but errors is no watch.", []Cause{CauseAnswerRefused}},
		"changing-objects": {"A kind that changes whole with each list, and ends each watch, is never followed.", []Cause{CauseWatchFailing}},
		"endless-pages":    {"A list that is too large is parked.", []Cause{CauseTooLarge}},
		"endless-events":   {"A kind that becomes too large is parked, again after each list.", []Cause{CauseTooLarge, CauseWatchFailing}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			attack, ok := hostile.Named(name)
			if !ok {
				t.Fatal("there is no such attack")
			}
			server, err := hostile.Start(t.Context(), attack, hostile.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			progress := &Progress{}
			w, stop := start(t, boundedConfig(server), func(Event) {}, func(o *Options) {
				o.Progress = progress
				o.PerKind = Limit{Objects: 2000, Bytes: 8 << 20}
				o.MinBackoff, o.MaxBackoff = 10*time.Millisecond, 100*time.Millisecond
			})
			w.Set("test", configMaps)
			eventually(t, tc.reason, func() error {
				got := progress.Unsynced(200 * time.Millisecond)
				if len(got) != 1 || got[0].Kind != "configmaps" || !slices.Contains(tc.want, got[0].Cause) {
					state, message := w.State(configMaps)
					return fmt.Errorf("want %v, got %v (%s: %s)", tc.want, got, state, message)
				}
				return nil
			})
			stop()
			if got := progress.Unsynced(0); len(got) != 0 {
				t.Errorf("want nothing to be reported of a released kind, got %v", got)
			}
		})
	}
}

// TestProgressOfHonestClusters is about kinds that are as they should be, or of which others tell.
func TestProgressOfHonestClusters(t *testing.T) {
	progress := &Progress{}
	w, _ := start(t, config, func(Event) {}, func(o *Options) { o.Progress = progress })
	missing, _ := widgets(t, "progress")
	w.Set("test", configMaps, missing)
	eventually(t, "synced", inState(w, configMaps, StateSynced))
	eventually(t, "not served", inState(w, missing, StateNotServed))
	if got := progress.Unsynced(0); len(got) != 0 {
		t.Errorf("want nothing, got %v", got)
	}
	w.Relist(func(gk schema.GroupKind) bool { return gk == configMaps.GroupKind() })
	eventually(t, "a kind that is listed again has not failed", func() error {
		if got := progress.Unsynced(0); len(got) != 0 {
			return fmt.Errorf("want nothing, got %v", got)
		}
		return nil
	})
}

func TestTrouble(t *testing.T) {
	t0 := time.Unix(0, 0)
	broken, refused := errors.New("broken"), fmt.Errorf("list: %w", errTooLarge)
	type attempt struct {
		listed, ends time.Duration // Since t0; never listed if negative.
		err          error
	}
	cases := map[string]struct {
		reason   string
		attempts []attempt
		failing  time.Duration // Negative for never.
		cause    Cause
	}{
		"First": {"Failures count from the first one.", []attempt{{-1, 1, io.ErrUnexpectedEOF}, {-1, 5, broken}}, 1, CauseListTruncated},
		"Steady": {
			"A watch that is stable ends a run of failures, and its own end begins the next.",
			[]attempt{{-1, 1 * time.Second, broken}, {2 * time.Second, 62 * time.Second, nil}}, 62 * time.Second, CauseWatchFailing,
		},
		"Short": {
			"A watch that does not last is a failure like the others.",
			[]attempt{{1 * time.Second, 2 * time.Second, nil}, {5 * time.Second, 6 * time.Second, broken}}, 2 * time.Second, CauseWatchFailing,
		},
		"TooLarge": {
			"A kind that is too large does not alternate with other causes.",
			[]attempt{{-1, 1, broken}, {2, 3, refused}, {-1, 4, broken}}, 1, CauseTooLarge,
		},
		"Panic": {"What could not be handled is not said of the list.", []attempt{{1, 2, &guard.Panic{}}}, 2, CauseHandlingFailed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got trouble
			for _, a := range tc.attempts {
				if a.listed >= 0 {
					got.listed = t0.Add(a.listed)
				}
				got.failed(a.err, t0.Add(a.ends))
			}
			if !got.failing.Equal(t0.Add(tc.failing)) || got.cause != tc.cause {
				t.Errorf("%s want %s at %s, got %s at %s", tc.reason, tc.cause, tc.failing, got.cause, got.failing.Sub(t0))
			}
		})
	}
}
