// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package usermeta tells the labels and annotations that users write from those of the machinery around them.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: it is what keeps
// labels and annotations that steer Crossplane, Kubernetes or Masthead from travelling, in either direction.
package usermeta

import (
	"slices"
	"strings"
)

// Owned returns the labels or annotations that are the user's. Those of Crossplane steer it (pause it, name an external
// resource, say to which composite a resource belongs); those of Masthead, kubectl and Kubernetes (*.k8s.io, *.x-k8s.io and
// *.kubernetes.io, except app.kubernetes.io, which is meant for users) are about the object where it is.
func Owned(in map[string]string) map[string]string {
	out := make(map[string]string, len(in))
	for k, v := range in {
		domain, _, prefixed := strings.Cut(k, "/")
		if prefixed && domain != "app.kubernetes.io" && slices.ContainsFunc(reservedDomains, func(d string) bool { return within(domain, d) }) {
			continue
		}
		out[k] = v
	}
	return out
}

// reservedDomains are the prefixes of labels and annotations that are not the user's, with everything below them.
var reservedDomains = []string{"crossplane.io", "masthead.dev", "k8s.io", "x-k8s.io", "kubernetes.io"} //nolint:gochecknoglobals // A constant.

// within is whether a domain is another one or a part of it.
func within(domain, parent string) bool {
	return domain == parent || strings.HasSuffix(domain, "."+parent)
}
