// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	uberzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logLevelPath is where the log level is read and changed, named like the API server's /debug/flags/v.
//
// Kubernetes' own components use this mechanism. A signal cannot carry a level and is hard to send to a container. The
// config file is read at the start; rereading a single option later would surprise. A change holds until the process
// ends, and affects one replica.
const logLevelPath = "/debug/flags/log-level"

// logLevel is how much the process logs.
type logLevel struct {
	atomic uberzap.AtomicLevel
	log    logr.Logger
}

// zapLevels are the levels by name.
func zapLevels() map[string]zapcore.Level {
	return map[string]zapcore.Level{
		"error": zapcore.ErrorLevel, "info": zapcore.InfoLevel, "debug": zapcore.DebugLevel, "trace": zapcore.Level(-4),
	}
}

// name is the present level.
func (l *logLevel) name() string {
	now := l.atomic.Level()
	for name, level := range zapLevels() {
		if level == now {
			return name
		}
	}
	return now.String()
}

// ServeHTTP answers GET with the level, and takes another one by PUT.
func (l *logLevel) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	switch req.Method {
	case http.MethodGet:
		_, _ = fmt.Fprintln(w, l.name())
	case http.MethodPut:
		const longest = 64
		body, err := io.ReadAll(io.LimitReader(req.Body, longest))
		wanted := strings.TrimSpace(string(body))
		if err != nil || !slices.Contains(logLevels, wanted) {
			http.Error(w, "the body must be one of "+strings.Join(logLevels, ", "), http.StatusBadRequest)
			return
		}
		before := l.name()
		l.atomic.SetLevel(zapLevels()[wanted])
		if wanted != before {
			// Logged as an error, too: readers of the log must know why there is less, or more.
			l.log.Error(nil, "The log level was changed", "from", before, "to", wanted)
		}
		_, _ = fmt.Fprintln(w, wanted)
	default:
		w.Header().Set("Allow", "GET, PUT")
		http.Error(w, "only GET and PUT", http.StatusMethodNotAllowed)
	}
}
