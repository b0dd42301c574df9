// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package usermeta separates users' labels and annotations from those of the tools around them.
//
// It guarantees that what Owned returns holds no key that a row of Reserved, or of the caller's own list, covers.
// Labels and annotations are treated alike.
package usermeta

import (
	"slices"
	"strings"
)

// Owned returns the users' labels or annotations: those that neither Reserved nor one of the patterns in also covers. A
// pattern is a key, or a domain followed by "/*", which covers every key whose prefix is that domain or a subdomain of
// it. The result is never nil and shares nothing with the input.
func Owned(in map[string]string, also ...string) map[string]string {
	out := make(map[string]string, len(in))
	for k, v := range in {
		if !reserved(k) && !slices.ContainsFunc(also, func(pattern string) bool { return covers(pattern, k) }) {
			out[k] = v
		}
	}
	return out
}

// reserved reports whether a row of Reserved covers a key.
func reserved(key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	return slices.ContainsFunc(Reserved(), func(r Row) bool {
		return !slices.Contains(r.Except, prefix) && slices.ContainsFunc(r.Keys, func(pattern string) bool { return covers(pattern, key) })
	})
}

// covers reports whether a pattern covers a key.
func covers(pattern, key string) bool {
	parent, isDomain := strings.CutSuffix(pattern, "/*")
	if !isDomain {
		return pattern == key
	}
	domain, _, prefixed := strings.Cut(key, "/")
	return prefixed && within(domain, parent)
}

// within reports whether a domain equals another or is a subdomain of it.
func within(domain, parent string) bool {
	rest, ok := strings.CutSuffix(domain, parent)
	return ok && (rest == "" || strings.HasSuffix(rest, "."))
}
