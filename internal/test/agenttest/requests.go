// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/masthead-dev/masthead/internal/test/controllertest"
)

// Requests records the agent's requests to one API server about the objects of its fixture, and about those of none.
// Every agent reads what earlier tests left in a lane's servers.
type Requests struct {
	fixture string

	mu   sync.Mutex
	seen []string

	// unanswered are the requests, except watches, without a response yet.
	unanswered atomic.Int32
}

// ofFixture matches the number of a request's fixture, as New names its objects.
var ofFixture = regexp.MustCompile(`\b(?:db|team-|target-)(\d+)\b`)

// NewRequests returns the record of a fixture.
func NewRequests(fixture int32) *Requests { return &Requests{fixture: strconv.Itoa(int(fixture))} }

// isOthers reports whether a request is only about another fixture's objects.
func (r *Requests) isOthers(request string) bool {
	found := ofFixture.FindAllStringSubmatch(request, -1)
	return len(found) > 0 && !slices.ContainsFunc(found, func(match []string) bool { return match[1] == r.fixture })
}

// Wrap records the requests of a transport.
func (r *Requests) Wrap(next http.RoundTripper) http.RoundTripper {
	return controllertest.RoundTripper(func(req *http.Request) (*http.Response, error) {
		request := req.Method + " " + req.URL.Path + "?" + req.URL.RawQuery
		if !r.isOthers(request) {
			r.mu.Lock()
			r.seen = append(r.seen, request)
			r.mu.Unlock()
			if !strings.Contains(request, "watch=true") {
				r.unanswered.Add(1)
				defer r.unanswered.Add(-1)
			}
		}
		return next.RoundTrip(req)
	})
}

// Filter returns the requests about objects, not watches, lists and discovery, whose path contains all parts.
func (r *Requests) Filter(parts ...string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, s := range r.seen {
		if strings.Contains(s, "watch=true") || strings.Contains(s, "/leases") {
			continue
		}
		ok := true
		for _, p := range parts {
			ok = ok && strings.Contains(s, p)
		}
		if ok {
			out = append(out, s)
		}
	}
	return out
}

// Writes returns the requests that are not reads.
func (r *Requests) Writes() []string {
	var out []string
	for _, s := range r.Filter() {
		if !strings.HasPrefix(s, http.MethodGet) {
			out = append(out, s)
		}
	}
	return out
}
