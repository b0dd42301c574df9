// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"bytes"
	"io"
	"regexp"
	"sync"
)

// lastWordsSize is how much of the output of a dying program is passed on, in bytes: the message and the first stacks.
const lastWordsSize = 16 << 10

// dying matches the beginning of the message of a program that ends itself: of klog, of the package that starts
// Kubernetes' programs (k8s.io/component-base/cli), of the Go runtime, and of the logger of etcd.
var dying = regexp.MustCompile(`^(F[0-9]{4} |E[0-9]{4} [^\]]*\] "command failed"|Error: |panic: |fatal error: |runtime: |SIG[A-Z]+: |\{"level":"(fatal|panic)")`)

// lastWords passes on what a control-plane program logs as it dies, and drops the rest of its log. Without it, a test
// whose API server is gone shows only "connection refused". A program that logs nothing was killed, most likely by the
// kernel because of a lack of memory. A program that is started again has it too, while the first one's last output is
// still read.
type lastWords struct {
	program string
	to      io.Writer

	mu   sync.Mutex
	line []byte
	left int
	dies bool
}

func (w *lastWords) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
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

// say passes on the line that has ended, if it belongs to the last words. The caller holds mu.
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
	// The output of a program must not look like the output of the test.
	_, _ = io.WriteString(w.to, w.program+": "+string(line)+"\n")
}
