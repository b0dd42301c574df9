// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"testing"
	"time"
)

func TestParseUsage(t *testing.T) {
	const status = "Name:\tmanager\nVmHWM:\t   2048 kB\nVmRSS:\t   1024 kB\n"
	const stat = "7 (a) b) S 1 1 1 0 -1 4194304 100 0 0 0 150 50 3 4 20 0 9 0 100 200 300"
	cases := map[string]struct {
		reason, status, stat string
		want                 Usage
		fails                bool
	}{
		"Running": {
			reason: "The name of a program can hold parentheses; times are in hundredths of a second.",
			status: status, stat: stat, want: Usage{Processor: 2 * time.Second, Resident: 1 << 20, Peak: 2 << 20},
		},
		"Zombie":   {reason: "A process that has ended has no memory.", status: "Name:\tmanager\n", stat: stat, fails: true},
		"CutShort": {reason: "A line that ends too soon says nothing.", status: status, stat: "7 (a) S 1", fails: true},
		"Garbage":  {reason: "What is no number is no memory.", status: "VmHWM:\tmuch kB\n", stat: stat, fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseUsage(tc.status, tc.stat)
			if (err != nil) != tc.fails || got != tc.want {
				t.Errorf("%s got %+v, %v, want %+v", tc.reason, got, err, tc.want)
			}
		})
	}
}

func TestReadUsage(t *testing.T) {
	one, err := ReadUsage(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if one.Resident == 0 || one.Peak < one.Resident {
		t.Errorf("A process that runs has memory, and never had less than its peak: got %+v", one)
	}
	if _, err := ReadUsage(os.Getpid(), -1); err == nil {
		t.Error("Of a process that is not there nothing can be said.")
	}
}
