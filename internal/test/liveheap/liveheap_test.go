// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package liveheap_test

import (
	"runtime"
	"testing"

	"github.com/masthead-dev/masthead/internal/test/liveheap"
)

func TestWatch(t *testing.T) {
	const mebibyte = 1 << 20
	cases := map[string]struct {
		reason      string
		use         func() any
		least, most uint64
	}{
		"Nothing": {"No memory was used.", func() any { return nil }, 0, mebibyte},
		"Kept":    {"What is in use in the end counts.", func() any { return make([]byte, 32*mebibyte) }, 32 * mebibyte, 34 * mebibyte},
		"Passed": {
			"What was in use for a moment counts, if anything was allocated meanwhile.", func() any {
				used := make([]byte, 32*mebibyte)
				garbage(512)
				runtime.KeepAlive(used)
				return nil
			}, 32 * mebibyte, 192 * mebibyte,
		},
		"Garbage": {"Of garbage, only what was allocated during a collection counts.", func() any { garbage(512); return nil }, 0, 192 * mebibyte},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			grown := liveheap.Watch(t)
			kept := tc.use()
			if got := grown(); got < tc.least || got > tc.most {
				t.Errorf("%s want %d to %d bytes, got %d", tc.reason, tc.least, tc.most, got)
			}
			runtime.KeepAlive(kept)
		})
	}
}

// garbage allocates a number of mebibytes, none of which is kept, in pieces of a tenth of a mebibyte.
func garbage(mebibytes int) {
	for range 10 * mebibytes {
		sink = make([]byte, 1<<20/10)
	}
	sink = nil
}

// sink makes the compiler allocate on the heap.
var sink []byte //nolint:gochecknoglobals // Only the compiler shall not know.
