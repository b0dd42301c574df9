// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"errors"
	"net"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPortAllocatorTake(t *testing.T) {
	type want struct {
		ports int
		err   bool
	}
	cases := map[string]struct {
		reason string
		count  int
		busy   map[int]bool
		taken  []int
		want   want
	}{
		"AllFree": {
			reason: "Every port of the range is given away once, then there is none left.",
			count:  3,
			want:   want{ports: 3, err: true},
		},
		"SomeBusy": {
			reason: "A port that another program listens on is skipped.",
			count:  3,
			busy:   map[int]bool{lowestPort + 1: true},
			want:   want{ports: 2, err: true},
		},
		"SomeReserved": {
			reason: "A port that was reserved is skipped, although it is free.",
			count:  3,
			taken:  []int{lowestPort, lowestPort + 2},
			want:   want{ports: 1, err: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			allocator := newPortAllocator()
			allocator.count = tc.count
			allocator.free = func(port int) bool { return !tc.busy[port] }
			for _, port := range tc.taken {
				allocator.reserve(port)
			}
			seen := map[int]bool{}
			var err error
			for range tc.count + 1 {
				var port int
				if port, err = allocator.take(); err != nil {
					break
				}
				if seen[port] || tc.busy[port] || port < lowestPort || port >= lowestPort+tc.count {
					t.Errorf("%s\ntake(): unexpected port %d, before it: %v", tc.reason, port, seen)
				}
				seen[port] = true
			}
			if diff := cmp.Diff(tc.want, want{ports: len(seen), err: err != nil}, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\ntake(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPortIsFree(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, text, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	if portIsFree(port) {
		t.Errorf("portIsFree(%d): want false while the port is in use", port)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if !portIsFree(port) {
		t.Errorf("portIsFree(%d): want true after its listener was closed", port)
	}
}

func TestHighestPort(t *testing.T) {
	cases := map[string]struct {
		reason  string
		content string
		err     error
		want    int
	}{
		"Usual":      {reason: "Ports end where the kernel's range begins.", content: "32768\t60999\n", want: 32767},
		"Raised":     {reason: "A range that begins later leaves more.", content: "40000 60999", want: 39999},
		"Wide":       {reason: "A range that begins too early cannot be avoided.", content: "1024 65535", want: defaultHighestPort},
		"Unreadable": {reason: "Without the file the kernel's default is assumed.", err: errors.New("boom"), want: defaultHighestPort},
		"Garbage":    {reason: "What is no number is not believed.", content: "many few", want: defaultHighestPort},
		"Empty":      {reason: "An empty file says nothing.", want: defaultHighestPort},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := highestPort(func(string) ([]byte, error) { return []byte(tc.content), tc.err })
			if got != tc.want {
				t.Errorf("%s\nhighestPort(): want %d, got %d", tc.reason, tc.want, got)
			}
		})
	}
}
