// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/masthead-dev/masthead/test/harness"
)

// A subject is a program that keeps the status of Applications.
type subject interface {
	// prepare installs its kind in the workload cluster, once.
	prepare(ctx context.Context) error

	// start runs it.
	start(ctx context.Context, period time.Duration) (running, error)

	// stop ends it, if it runs.
	stop() error

	// user is its user name at the API servers.
	user() string

	// kind is the kind of Application that it keeps.
	kind() applicationKind
}

// running is a program that runs.
type running struct {
	pid int

	// exited is closed when it has ended.
	exited <-chan struct{}

	// metrics reads its metrics.
	metrics func(context.Context) (harness.Metrics, error)
}

// applicationKind is a kind of Application.
type applicationKind struct {
	group, version string

	// manifest is the JSON of an Application of some components.
	manifest func(name, selector string, parts []part) []byte

	// watch follows the statuses of all Applications, and verdict describes one status in words; "" before there is a
	// status.
	watch   func(ctx context.Context, each func(state), failed chan<- error) error
	verdict func(ctx context.Context, namespace, name string) (string, error)
}

// part is what the spec of an Application says of a component.
type part struct{ name, group, version, kind string }

const applications = "applications"

func (k applicationKind) collection(namespace string) string {
	return collection(k.group, k.version, applications, namespace)
}

// application is the JSON of an Application of the three components.
func (k applicationKind) application(name string) []byte {
	parts := make([]part, 0, len(components()))
	for _, c := range components() {
		parts = append(parts, part{name: name + "-" + c.suffix, group: c.group, version: c.version, kind: c.kind})
	}
	return k.manifest(name, `{"matchLabels":{"app.kubernetes.io/name":"`+name+`"}}`, parts)
}
