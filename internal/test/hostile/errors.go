// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"net/http"
	"strings"
)

func errorAttacks() []Attack {
	return []Attack{
		{
			Name: "retry-after", Connects: true,
			Harm:  "Answers 429 and asks to be left alone for thirty years, which a client that believes it waits",
			Guard: "Time-outs of requests; the delay that a cluster asks for is not believed without a limit",
			answer: onEverything(func(w http.ResponseWriter) {
				w.Header().Set("Retry-After", "1000000000")
				fails(w, http.StatusTooManyRequests, "busy")
			}),
		},
		{
			Name: "retry-at-once", Connects: true,
			Harm:  "Answers 503 and requests a retry at once",
			Guard: "Back-off between lists, and the limit of the client's rate",
			answer: onEverything(func(w http.ResponseWriter) {
				w.Header().Set("Retry-After", "0")
				fails(w, http.StatusServiceUnavailable, "again")
			}),
		},
		{
			Name: "enormous-errors", Connects: true,
			Harm:  "Answers with errors whose messages are 4 MiB of text that moves a terminal's cursor",
			Guard: "Messages are cut, and cleaned of control characters",
			answer: onEverything(func(w http.ResponseWriter) {
				fails(w, http.StatusForbidden, strings.Repeat(`\u001b[2J`, 512<<10))
			}),
		},
		{
			Name: "endless-errors", Connects: true,
			Harm:   "Answers with errors whose details have no end",
			Guard:  "Limits of the bytes and elements of an answer",
			answer: endlessErrors,
		},
		{
			Name: "lying-writes", Connects: true,
			Harm:   "Says that it has done what was requested, and shows another object, with another kind and name",
			Guard:  "What is written is compared with what the watch brings; a write that does nothing is not repeated without back-off",
			answer: lyingWrites,
		},
		{
			Name: "endless-writes", Connects: true,
			Harm:   "Answers to writes with objects without end",
			Guard:  "Limits of the bytes and elements of an answer",
			answer: endlessWrites,
		},
	}
}

func fails(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"` + message + `"}`))
}

// onEverything answers all requests except probes.
func onEverything(do func(w http.ResponseWriter)) func(*Server, http.ResponseWriter, *request) bool {
	return func(_ *Server, w http.ResponseWriter, r *request) bool {
		if r.isProbe() {
			return false
		}
		do(w)
		return true
	}
}

func endlessErrors(s *Server, w http.ResponseWriter, r *request) bool {
	if r.isProbe() {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusInternalServerError)
	a := &answer{ctx: r.Context(), w: w, flush: http.NewResponseController(w).Flush, left: s.options.MaxBytes}
	a.text(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"details":{"causes":[{}`)
	a.endless(",{}")
	return true
}

func lyingWrites(_ *Server, w http.ResponseWriter, r *request) bool {
	if !r.writes() || strings.HasSuffix(r.group, "authentication.k8s.io") || strings.HasSuffix(r.group, "authorization.k8s.io") {
		return false
	}
	answerJSON(w, http.StatusOK, map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "another", "namespace": "kube-system", "generation": 1 << 40},
	})
	return true
}

func endlessWrites(s *Server, w http.ResponseWriter, r *request) bool {
	if !r.writes() {
		return false
	}
	a := s.begin(w, r)
	a.text(`{"apiVersion":"v1","kind":"Thing","metadata":{"name":"x"},"spec":[{}`)
	a.endless(",{}")
	return true
}
