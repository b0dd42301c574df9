// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"bytes"
	"io"
	"regexp"
)

// lastWordsSize is how much of what a program says as it dies is passed on, in bytes: the message and the first stacks.
const lastWordsSize = 16 << 10

// dying begins the message of a program that ends itself: of klog, of what Kubernetes' programs are started by
// (k8s.io/component-base/cli), of the Go runtime, and of the logger of etcd.
var dying = regexp.MustCompile(`^(F[0-9]{4} |E[0-9]{4} [^\]]*\] "command failed"|Error: |panic: |fatal error: |runtime: |SIG[A-Z]+: |\{"level":"(fatal|panic)")`)

// lastWords passes on what a control-plane program says as it dies, and drops the rest of its log. Without it a test
// whose API server is gone has "connection refused" to show and nothing else. A program that says nothing was killed,
// most likely by the kernel for want of memory. It is used by one goroutine.
type lastWords struct {
	program string
	to      io.Writer

	line []byte
	left int
	dies bool
}

func (w *lastWords) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		rest = after
		if len(w.line) < lastWordsSize {
			w.line = append(w.line, line[:min(len(line), lastWordsSize)]...)
		}
		if ended {
			w.say()
		}
	}
	return len(p), nil
}

// say passes on the line that has ended, if it is to be.
func (w *lastWords) say() {
	line := w.line
	w.line = w.line[:0]
	if !w.dies && dying.Match(line) {
		w.dies, w.left = true, lastWordsSize
	}
	if !w.dies || w.left <= 0 {
		return
	}
	w.left -= len(line) + 1
	// What a program prints must not look like what the test prints.
	_, _ = io.WriteString(w.to, w.program+": "+string(line)+"\n")
}
