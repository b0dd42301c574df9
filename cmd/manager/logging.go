// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"

	"github.com/go-logr/logr"
	uberzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// newLogger returns the logger of the whole process, and what changes its level. Lines are JSON with times that sort,
// unless text is requested.
func newLogger(o LogOptions, w io.Writer) (logr.Logger, *logLevel) {
	level := uberzap.NewAtomicLevelAt(zapLevels()[o.Level])
	encoder := zap.JSONEncoder
	if o.Format == "text" {
		encoder = zap.ConsoleEncoder
	}
	log := zap.New(
		zap.WriteTo(w),
		zap.Level(level),
		// A stack trace with each failed request would bury the message; panics bring theirs along.
		zap.StacktraceLevel(zapcore.DPanicLevel),
		encoder(func(c *zapcore.EncoderConfig) { c.EncodeTime = zapcore.RFC3339NanoTimeEncoder }),
	)
	return log, &logLevel{atomic: level, log: log}
}

// useLogger makes the libraries log through the process's logger too.
func useLogger(l logr.Logger) {
	ctrl.SetLogger(l)
	klog.SetLogger(l.WithName("client-go"))
}
