// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"github.com/go-logr/logr"
)

// logConstructor has every line say which cluster it is about.
func logConstructor(base logr.Logger) func(*Key) logr.Logger {
	base = base.WithValues("controller", "connection")
	return func(k *Key) logr.Logger {
		if k == nil {
			return base
		}
		return base.WithValues("cluster", k.String())
	}
}

// verbosity is the level at which the log tells of the state that was reached from another one: 0 for what is news, 1
// for what is not. That a connection is tried again, and fails for the reason that is known, is no news: a thousand
// clusters that are down for a day would fill the log.
func (r *record) verbosity(from State) int {
	now := string(r.state) + "/" + r.reason
	if r.state == StateConnecting || r.logged == now && from != r.state {
		return 1
	}
	r.logged = now
	return 0
}
