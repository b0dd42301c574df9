// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import "testing"

func TestLatest(t *testing.T) {
	reported := Latest[string, string]{}
	for _, tc := range []struct {
		reason, about, what string
		news                bool
	}{
		{"That all is well is what was assumed.", "a", "", false},
		{"A problem is news.", "a", "Refused", true},
		{"It is so still.", "a", "Refused", false},
		{"So it is of another thing.", "b", "Refused", true},
		{"Another reason is news.", "a", "Foreign", true},
		{"That it is well again is news.", "a", "", true},
	} {
		if reported.Set(tc.about, tc.what) != tc.news {
			t.Errorf("%s want news %v", tc.reason, tc.news)
		}
	}
	reported.Forget(func(about string) bool { return about == "b" })
	if !reported.Set("b", "Refused") {
		t.Error("want it to be news again of what was forgotten")
	}
}

func TestLatestFirst(t *testing.T) {
	var l Latest[string, int]
	for _, tc := range []struct {
		reason      string
		set         bool
		value, want int
	}{
		{"The first value is kept.", false, 1, 1},
		{"A later one is not.", false, 2, 1},
		{"Another one can be set.", true, 3, 3},
		{"The zero value is none.", true, 0, 0},
		{"The next one is the first.", false, 4, 4},
	} {
		if tc.set {
			l.Set("a", tc.value)
		} else if got := l.First("a", tc.value); got != tc.want {
			t.Errorf("%s want %d, got %d", tc.reason, tc.want, got)
		}
		if !l.Is("a", tc.want) || !l.Is("b", 0) {
			t.Errorf("%s want %d to be the value", tc.reason, tc.want)
		}
	}
}

// TestLatestUpdateReadsWithTheLock: otherwise, what was read before a change could overwrite what was read after it.
func TestLatestUpdateReadsWithTheLock(t *testing.T) {
	var l Latest[string, int]
	for want := range 2 {
		before, now := l.Update("a", func(before int) int {
			if l.mu.TryLock() {
				t.Error("want the lock to be held")
			}
			return before + 1
		})
		if before != want || now != want+1 || !l.Is("a", now) {
			t.Errorf("want %d, then %d, got %d, then %d", want, want+1, before, now)
		}
	}
}
