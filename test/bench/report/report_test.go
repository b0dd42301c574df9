// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 0, 100)
	for i := range 100 {
		hundred = append(hundred, time.Duration(100-i))
	}
	cases := map[string]struct {
		reason    string
		durations []time.Duration
		p         int
		want      time.Duration
	}{
		"None":     {"There is no percentile of nothing.", nil, 50, 0},
		"One":      {"Every percentile of one is that one.", []time.Duration{7}, 99, 7},
		"Median":   {"The lower of the two in the middle is not exceeded by half of them.", []time.Duration{4, 1, 3, 2}, 50, 2},
		"Ninety":   {"The order in which they came means nothing.", hundred, 90, 90},
		"OneIn100": {"The hundredth is beyond the 99th percentile.", hundred, 99, 99},
		"Rounded":  {"Of ten, the 99th percentile is the largest: nine are only 90 percent.", hundred[:10], 99, 100},
		"All":      {"All of them do not exceed the largest.", hundred, 100, 100},
		"Zero":     {"No percentile is less than the smallest.", hundred, 0, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Percentile(tc.durations, tc.p); got != tc.want {
				t.Errorf("%s got %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
	if hundred[0] != 100 {
		t.Error("The caller's durations must stay in their order.")
	}
}

func TestPerSecond(t *testing.T) {
	if got := PerSecond(300, 1500*time.Millisecond); got != 200 {
		t.Errorf("300 in one and a half seconds are 200 a second, not %v", got)
	}
	if got := PerSecond(300, 0); got != 0 {
		t.Errorf("What took no time was not measured: got %v, want 0", got)
	}
}

func TestTable(t *testing.T) {
	table := Table{Title: "Figures", Header: []string{"what", "how many"}}
	if got := table.String(); got != "" {
		t.Errorf("A table without rows is not shown, but got %q", got)
	}
	table.Add("a|b", "1")
	table.Add("short")
	want := "### Figures\n\n| what | how many |\n|---|---|\n| a\\|b | 1 |\n| short |  |\n"
	if diff := cmp.Diff(want, table.String()); diff != "" {
		t.Errorf("Each row has all columns, and a bar in a cell does not begin a new one.\n-want, +got:\n%s", diff)
	}
}

func TestFormats(t *testing.T) {
	for _, tc := range []struct{ got, want string }{
		{Milliseconds(1234 * time.Microsecond), "1.2 ms"},
		{Milliseconds(1234 * time.Millisecond), "1234 ms"},
		{Mebibytes(64 << 20), "64 MiB"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
	}
}
