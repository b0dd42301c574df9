// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Verbs of requests, as Kubernetes calls them. A request that is for no resource has none.
const (
	verbGet    = "get"
	verbList   = "list"
	verbWatch  = "watch"
	verbCreate = "create"
	verbUpdate = "update"
	verbPatch  = "patch"
	verbDelete = "delete"
)

// request is a request with what its path contains.
type request struct {
	*http.Request

	verb                    string
	group, version          string
	resource, subresource   string
	namespace, name         string
	metadataOnly            bool
	limit, from             int
	initialEvents, isLookup bool
}

// parse reads a request:
//
//	/api/v1/[namespaces/<namespace>/]<resource>[/<name>[/<subresource>]]
//	/apis/<group>/<version>/[namespaces/<namespace>/]<resource>[/<name>[/<subresource>]]
func parse(req *http.Request) *request {
	r := &request{Request: req}
	query := req.URL.Query()
	r.limit, _ = strconv.Atoi(query.Get("limit"))
	r.from, _ = strconv.Atoi(query.Get("continue"))
	r.initialEvents = query.Get("sendInitialEvents") == "true"
	r.metadataOnly = strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadata")
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		r.version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		r.group, r.version, parts = parts[1], parts[2], parts[3:]
	default:
		r.isLookup = slices.Contains([]string{"api", "apis", "openapi"}, parts[0])
		return r
	}
	if parts[0] == "namespaces" && len(parts) > 2 && !slices.Contains([]string{"status", "finalize"}, parts[2]) {
		r.namespace, parts = parts[1], parts[2:]
	}
	r.resource = parts[0]
	if len(parts) > 1 {
		r.name = parts[1]
	}
	if len(parts) > 2 {
		r.subresource = parts[2]
	}
	r.verb = r.requestVerb(query.Get("watch"))
	return r
}

func (r *request) requestVerb(watch string) string {
	switch r.Method {
	case http.MethodPost:
		return verbCreate
	case http.MethodPut:
		return verbUpdate
	case http.MethodPatch:
		return verbPatch
	case http.MethodDelete:
		return verbDelete
	}
	on, _ := strconv.ParseBool(watch)
	switch {
	case on:
		return verbWatch
	case r.name == "":
		return verbList
	}
	return verbGet
}

// writes is whether the request would change something.
func (r *request) writes() bool {
	return slices.Contains([]string{verbCreate, verbUpdate, verbPatch, verbDelete}, r.verb)
}

// isProbe is whether it is one of the requests that an API server has to answer before Masthead connects to it: about
// its health, about the identity of its cluster, and about the hub that the cluster belongs to.
func (r *request) isProbe() bool {
	return r.URL.Path == "/readyz" || r.URL.Path == "/version" || r.asksIdentity() ||
		r.verb == verbGet && r.resource == "customresourcedefinitions" && r.name == "hubs.masthead.dev"
}

// asksIdentity is whether it requests the object that identifies a cluster.
func (r *request) asksIdentity() bool {
	return r.verb == verbGet && r.resource == "namespaces" && r.name == "kube-system"
}

// isDiscovery is whether it is a discovery request.
func (r *request) isDiscovery() bool { return r.isLookup && !strings.HasPrefix(r.URL.Path, "/openapi") }
