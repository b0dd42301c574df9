// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestLogLevelChangesAtRuntime(t *testing.T) {
	var out bytes.Buffer
	log, level := newLogger(LogOptions{Level: "info", Format: "json"}, &out)
	for _, tc := range []struct {
		reason, method, body string
		code                 int
		answer               string
		logs                 bool // whether a line of the level debug is logged afterwards
		says                 string
	}{
		{reason: "The level is that of the options.", method: http.MethodGet, code: http.StatusOK, answer: "info"},
		{reason: "Another level holds from then on.", method: http.MethodPut, body: "debug\n", code: http.StatusOK, answer: "debug", logs: true,
			says: "The log level was changed"},
		{reason: "It is read back.", method: http.MethodGet, code: http.StatusOK, answer: "debug", logs: true},
		{reason: "What is no level changes nothing.", method: http.MethodPut, body: "loud", code: http.StatusBadRequest, answer: "error, info, debug, trace", logs: true},
		{reason: "Nor does what is long.", method: http.MethodPut, body: strings.Repeat("debug", 1000), code: http.StatusBadRequest, answer: "error", logs: true},
		{reason: "No other method is known.", method: http.MethodPost, body: "info", code: http.StatusMethodNotAllowed, answer: "only", logs: true},
		{reason: "The lowest level has a name.", method: http.MethodPut, body: "trace", code: http.StatusOK, answer: "trace", logs: true, says: "The log level was changed"},
		{reason: "A level that stays the same is not logged.", method: http.MethodPut, body: "trace", code: http.StatusOK, answer: "trace", logs: true},
		{reason: "A change is logged at every level.", method: http.MethodPut, body: "error", code: http.StatusOK, answer: "error", says: "The log level was changed"},
	} {
		out.Reset()
		w := httptest.NewRecorder()
		level.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), tc.method, logLevelPath, strings.NewReader(tc.body)))
		if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.answer) {
			t.Errorf("%s\nwant %d and %q, got %d and %q", tc.reason, tc.code, tc.answer, w.Code, w.Body)
		}
		if tc.says == "" && out.Len() > 0 || !strings.Contains(out.String(), tc.says) {
			t.Errorf("%s\nwant the log to say %q, got %q", tc.reason, tc.says, out.String())
		}
		out.Reset()
		log.V(1).Info("hello")
		if got := out.Len() > 0; got != tc.logs {
			t.Errorf("%s\na line of the level debug is logged: want %v, got %v", tc.reason, tc.logs, got)
		}
	}
}
