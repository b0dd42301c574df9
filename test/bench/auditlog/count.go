// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package auditlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// A Request identifies the requests that are counted together.
type Request struct {
	User string
	Verb string
	// Resource with its subresource, or the path of a request that is for no resource.
	Resource string
	// Name of the object.
	Name string
}

// Class is the purpose of a request.
type Class string

const (
	// Work is every request that is in none of the other classes.
	Work Class = "work"
	// Watch is the beginning of a watch. Each watch is requested again every five to ten minutes.
	Watch Class = "watch"
	// Lease is leader election.
	Lease Class = "lease"
	// Probe checks whether the API server is healthy and still the same one.
	Probe Class = "probe"
)

// Classify returns the class of a request.
func Classify(r Request) Class {
	switch {
	case r.Verb == "watch":
		return Watch
	case r.Resource == "leases":
		return Lease
	case r.Resource == "/readyz", r.Resource == "/livez", r.Resource == "/healthz", r.Resource == "/version":
		return Probe
	case r.Resource == "namespaces" && r.Verb == "get" && r.Name == "kube-system",
		r.Resource == "customresourcedefinitions" && r.Verb == "get" && r.Name == fleetv1alpha1.HubMarkerName:
		return Probe
	}
	return Work
}

// Writes reports whether a request changes something. A review is created, and is only a question.
func (r Request) Writes() bool {
	if strings.HasSuffix(r.Resource, "reviews") {
		return false
	}
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// Counts are requests of one user.
type Counts map[Request]int

// Add adds other counts.
func (c Counts) Add(other Counts) {
	for r, n := range other {
		c[r] += n
	}
}

// Count is how many requests are of a class.
func (c Counts) Count(class Class) int {
	sum := 0
	for r, n := range c {
		if Classify(r) == class {
			sum += n
		}
	}
	return sum
}

// Writes is how many requests of a class change something.
func (c Counts) Writes(class Class) int {
	sum := 0
	for r, n := range c {
		if r.Writes() && Classify(r) == class {
			sum += n
		}
	}
	return sum
}

// String lists the counts by verb and resource, the most frequent first.
func (c Counts) String() string {
	byKind := map[string]int{}
	for r, n := range c {
		byKind[r.Verb+" "+r.Resource] += n
	}
	kinds := slices.SortedFunc(maps.Keys(byKind), func(a, b string) int {
		if byKind[a] != byKind[b] {
			return byKind[b] - byKind[a]
		}
		return strings.Compare(a, b)
	})
	parts := make([]string, 0, len(kinds))
	for _, k := range kinds {
		parts = append(parts, fmt.Sprintf("%d %s", byKind[k], k))
	}
	return strings.Join(parts, ", ")
}

// event is the part of audit.k8s.io/v1 Event that is read.
type event struct {
	Stage      string `json:"stage"`
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef *struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Name        string `json:"name"`
	} `json:"objectRef"`
}

// Count counts the requests of a user in lines of an audit log. A request that was answered at once has one line; one
// of a watch has a line when it begins, which is counted, and one when it ends, which is not.
func Count(lines []byte, user string) (Counts, error) {
	counts := Counts{}
	// Most lines are of other users: the administrator who creates the objects, and the control plane itself.
	mention, err := json.Marshal(user)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(lines) {
		if !bytes.Contains(line, mention) {
			continue
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("cannot parse a line of an audit log: %w", err)
		}
		if r, ok := parseRequest(e); ok && r.User == user {
			counts[r]++
		}
	}
	return counts, nil
}

func parseRequest(e event) (Request, bool) {
	begun := e.Stage == "ResponseStarted"
	if begun != (e.Verb == "watch") || !begun && e.Stage != "ResponseComplete" && e.Stage != "Panic" {
		return Request{}, false
	}
	r := Request{User: e.User.Username, Verb: e.Verb}
	if e.ObjectRef == nil || e.ObjectRef.Resource == "" {
		r.Resource, _, _ = strings.Cut(e.RequestURI, "?")
		return r, true
	}
	r.Resource, r.Name = e.ObjectRef.Resource, e.ObjectRef.Name
	if e.ObjectRef.Subresource != "" {
		r.Resource += "/" + e.ObjectRef.Subresource
	}
	return r, true
}
