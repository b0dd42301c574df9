// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLastWords(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		wrote  []string
		want   string
	}{
		"Alive": {
			reason: "errors of a server that lives are its own matter",
			wrote:  []string{"I1126 a\n", "E1126 b\nW1126 c\n", "Failed\n"},
		},
		"Fatal": {
			reason: "klog ends the program, and shows where",
			wrote:  []string{"I1126 a\n", "F1126 03:17 hooks.go:1] PostStartHook failed\ngoroutine 1\n"},
			want:   "etcd: F1126 03:17 hooks.go:1] PostStartHook failed\netcd: goroutine 1\n",
		},
		"CommandFailed": {
			reason: "an API server whose port is taken ends with an error",
			wrote:  []string{"E1126 03:17:01.1 7 run.go:72] \"command failed\" err=\"failed to listen\"\n"},
			want:   "etcd: E1126 03:17:01.1 7 run.go:72] \"command failed\" err=\"failed to listen\"\n",
		},
		"BadFlag": {
			reason: "or before it has a log",
			wrote:  []string{"Error: unknown flag: --x\n"},
			want:   "etcd: Error: unknown flag: --x\n",
		},
		"Panic": {
			reason: "the runtime ends it",
			wrote:  []string{"panic: close of closed channel\n", "\n", "goroutine 7\n"},
			want:   "etcd: panic: close of closed channel\n" + "etcd: \n" + "etcd: goroutine 7\n",
		},
		"FatalError": {
			reason: "and what cannot be recovered from begins otherwise",
			wrote:  []string{"fatal error: concurrent map writes\n"},
			want:   "etcd: fatal error: concurrent map writes\n",
		},
		"JSON": {
			reason: "etcd writes JSON",
			wrote:  []string{`{"level":"warn"}` + "\n" + `{"level":"fatal","msg":"no space"}` + "\n"},
			want:   `etcd: {"level":"fatal","msg":"no space"}` + "\n",
		},
		"Pieces": {
			reason: "a line comes in the pieces that the pipe makes of it",
			wrote:  []string{"pa", "nic: ", "x", "\ny", "\n"},
			want:   "etcd: panic: x\netcd: y\n",
		},
		"Middle": {
			reason: "a message about a panic is not one",
			wrote:  []string{"E1126 recovered panic: x\n"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got bytes.Buffer
			w := &lastWords{program: "etcd", to: &got}
			for _, piece := range tc.wrote {
				if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
					t.Errorf("%s: Write(%q): got %d, %v", tc.reason, piece, n, err)
				}
			}
			if diff := cmp.Diff(tc.want, got.String()); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLastWordsAreBounded(t *testing.T) {
	t.Parallel()
	var got bytes.Buffer
	w := &lastWords{program: "etcd", to: &got}
	for _, line := range []string{"I1126 " + strings.Repeat("x", 4*lastWordsSize), "panic: x", strings.Repeat("goroutine\n", lastWordsSize)} {
		if _, err := w.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.HasPrefix(got.String(), "etcd: panic: x\netcd: goroutine\n") {
		t.Errorf("it begins with %.40q", got.String())
	}
	if limit := 2 * lastWordsSize; got.Len() > limit {
		t.Errorf("got %d bytes, want at most %d", got.Len(), limit)
	}
	if cap(w.line) > 4*lastWordsSize {
		t.Errorf("a long line takes %d bytes", cap(w.line))
	}
}

// TestLastWordsOfAProgramThatIsStartedAgain fails with the race detector.
func TestLastWordsOfAProgramThatIsStartedAgain(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := &lastWords{program: "etcd", to: &out}
	var processes sync.WaitGroup
	for range 2 {
		processes.Go(func() { _, _ = w.Write([]byte("panic: x\n")) })
	}
	processes.Wait()
	if want := strings.Repeat("etcd: panic: x\n", 2); out.String() != want {
		t.Errorf("want %q, got %q", want, out.String())
	}
}
