// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"strings"

	"github.com/go-logr/logr"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
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

// keyOfName is the reverse of Key.ClusterName.
func keyOfName(name mcr.ClusterName) (Key, bool) {
	parts := strings.Split(string(name), "/")
	if len(parts) != 3 {
		return Key{}, false
	}
	return Key{Source: parts[0], Namespace: parts[1], Name: parts[2]}, true
}
