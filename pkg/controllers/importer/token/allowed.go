// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"fmt"
	"net/url"
	"strings"
)

// Allowed are the URLs to which the operator allows credentials to be sent. One that ends in "/" allows every path
// below it.
type Allowed []*url.URL

// ParseAllowed parses the URLs of an operator: https, without user, query and fragment.
func ParseAllowed(urls []string) (Allowed, error) {
	var allowed Allowed
	for _, raw := range urls {
		u, err := url.Parse(raw)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return nil, fmt.Errorf("%q is not an https URL without user, query and fragment", raw)
		}
		allowed = append(allowed, u)
	}
	return allowed, nil
}

// Find returns the URL that allows another one; nil for none.
func (a Allowed) Find(raw string) *url.URL {
	parsed, err := ParseAllowed([]string{raw})
	// A server that decodes a path again must not leave the allowed one.
	if err != nil || strings.Contains(parsed[0].Path, "..") || strings.Contains(raw, "%") {
		return nil
	}
	u := parsed[0]
	for _, by := range a {
		path := by.Path == u.Path || strings.HasSuffix(by.Path, "/") && strings.HasPrefix(u.Path, by.Path)
		if strings.EqualFold(by.Host, u.Host) && path {
			return by
		}
	}
	return nil
}
