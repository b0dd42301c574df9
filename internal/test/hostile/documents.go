// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"net/http"
	"strings"
)

func documentAttacks() []Attack {
	return []Attack{
		{
			Name: "endless-discovery", Connects: true,
			Harm:  "Says with {},{},… without end what it serves",
			Guard: "Limit of the elements of an answer, before it is decoded",
			answer: onDiscovery(func(a *answer, groups bool) {
				a.text("%s{}", discoveryHead(groups))
				a.endless(",{}")
			}),
		},
		{
			Name: "many-kinds", Connects: true,
			Harm:  "Serves two hundred thousand kinds, so that every copy of its discovery is as large",
			Guard: "Limits of the elements of an answer, and of the kinds that are kept",
			answer: onDiscovery(func(a *answer, groups bool) {
				a.text("%s{}", discoveryHead(groups))
				for i := range 200_000 {
					if !a.text(`,{"name":"kind%ds","kind":"Kind%d","namespaced":true,"verbs":["list","watch"]}`, i, i) {
						return
					}
				}
				a.text("]}")
			}),
		},
		{
			Name: "deep-discovery", Connects: true,
			Harm:  "Nests what it says that it serves millions deep",
			Guard: "Limit of the depth of an answer, before it is decoded",
			answer: onDiscovery(func(a *answer, groups bool) {
				a.text(`%s{"x":`, discoveryHead(groups))
				a.endless("[")
			}),
		},
		{
			Name: "lying-discovery", Connects: true,
			Harm:  "Serves kinds whose names are paths, so that requests go where they should not",
			Guard: "A kind that could not stand in a path is not requested",
			answer: onDiscovery(func(a *answer, groups bool) {
				a.text(`%s{"name":"../../secrets","kind":"../Secret","namespaced":true,"verbs":["list","watch"]},`, discoveryHead(groups))
				a.text(`{"name":"secrets?x=","kind":"Secret#","group":"../..","version":"../v1","namespaced":false,"verbs":["list","watch"]}]}`)
			}),
		},
		{
			Name: "endless-openapi", Connects: true,
			Harm:   "Has an OpenAPI document without end",
			Guard:  "It is never requested, and limited like every other answer",
			answer: endlessOpenAPI,
		},
	}
}

func discoveryHead(groups bool) string {
	if groups {
		return `{"kind":"APIGroupList","apiVersion":"v1","groups":[`
	}
	return `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[`
}

// onDiscovery answers all discovery requests.
func onDiscovery(do func(a *answer, groups bool)) func(*Server, http.ResponseWriter, *request) bool {
	return func(s *Server, w http.ResponseWriter, r *request) bool {
		if !r.isDiscovery() {
			return false
		}
		do(s.begin(w, r), strings.Trim(r.URL.Path, "/") == "apis")
		return true
	}
}

func endlessOpenAPI(s *Server, w http.ResponseWriter, r *request) bool {
	if !strings.HasPrefix(r.URL.Path, "/openapi") {
		return false
	}
	a := s.begin(w, r)
	a.text(`{"swagger":"2.0","paths":{"":{}`)
	a.endless(`,"":{}`)
	return true
}
