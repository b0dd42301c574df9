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
