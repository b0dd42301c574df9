// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"
)

// chunk is about how much of an endless answer is sent at once, in bytes.
const chunk = 64 << 10

// answer is the bounded body of an answer. Anything that is written after its end is dropped.
type answer struct {
	ctx   context.Context // It is the lifetime of this object.
	w     http.ResponseWriter
	flush func() error
	left  int64
	ended bool
}

// begin begins an answer in JSON.
func (s *Server) begin(w http.ResponseWriter, r *request) *answer {
	return s.beginAnswer(w, r, "application/json")
}

func (s *Server) beginAnswer(w http.ResponseWriter, r *request, contentType string) *answer {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(http.StatusOK)
	return &answer{ctx: r.Context(), w: w, flush: http.NewResponseController(w).Flush, left: s.options.MaxBytes}
}

// write sends text, and returns whether more can be sent.
func (a *answer) write(text []byte) bool {
	if a.ended || a.ctx.Err() != nil || int64(len(text)) > a.left {
		a.ended = true
		return false
	}
	a.left -= int64(len(text))
	if _, err := a.w.Write(text); err != nil {
		a.ended = true
	}
	return !a.ended
}

func (a *answer) text(format string, args ...any) bool {
	if len(args) == 0 {
		return a.write([]byte(format))
	}
	return a.write(fmt.Appendf(nil, format, args...))
}

// sent flushes what has been written.
func (a *answer) sent() bool {
	if !a.ended && a.flush() != nil {
		a.ended = true
	}
	return !a.ended
}

// endless sends a text repeatedly until the answer has to end.
func (a *answer) endless(text string) {
	block := bytes.Repeat([]byte(text), chunk/len(text)+1)
	for a.write(block) {
	}
}

// times sends a text n times.
func (a *answer) times(n int, text string) bool {
	per := chunk/len(text) + 1
	block := bytes.Repeat([]byte(text), per)
	for ; n >= per; n -= per {
		if !a.write(block) {
			return false
		}
	}
	return a.write(block[:n*len(text)])
}

// wait waits, unless the answer ends earlier.
func (a *answer) wait(d time.Duration) bool {
	if a.ended {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-a.ctx.Done():
		a.ended = true
	case <-timer.C:
	}
	return !a.ended
}

// hang waits for the end of the answer.
func (a *answer) hang() {
	a.sent()
	<-a.ctx.Done()
}

// drip sends a text byte by byte.
func (s *Server) drip(a *answer, text string) {
	for i := range len(text) {
		if !a.write([]byte{text[i]}) || !a.sent() || !a.wait(s.options.Drip) {
			return
		}
	}
	a.hang()
}
