// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/metric"
)

const (
	// OtherVerb is the verb of a non-resource request.
	OtherVerb = "other"
	// NoAnswer is the code of a request without a response.
	NoAnswer = "none"
)

// Verbs returns the verbs that are distinguished, so that arbitrary paths add no series.
func Verbs() sets.Set[string] {
	return sets.New("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
}

// Counts counts the requests to one cluster, over all its connections. A request that ends after the cluster is
// forgotten is not counted, so that no series is re-created. A nil *Counts counts nothing.
type Counts struct {
	vec  *prometheus.CounterVec
	name mcr.ClusterName

	mu    sync.Mutex
	ended bool
}

// NewCounts counts the requests to a cluster, in a vector with the labels of a cluster, "verb" and "code".
func NewCounts(vec *prometheus.CounterVec, name mcr.ClusterName) *Counts {
	return &Counts{vec: vec, name: name}
}

// Add counts a sent request and its result.
func (c *Counts) Add(verb string, resp *http.Response) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.vec.WithLabelValues(metric.ClusterValues(c.name, verb, codeClass(resp))...).Inc()
	}
}

// End stops counting.
func (c *Counts) End() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// codeClass returns the class of a status code. The cluster controls the code itself.
func codeClass(resp *http.Response) string {
	if resp == nil || resp.StatusCode < 100 || resp.StatusCode > 599 {
		return NoAnswer
	}
	return strconv.Itoa(resp.StatusCode/100) + "xx"
}

// verbs determines the verbs of requests, as the API server does.
type verbs struct {
	// prefix is the path of the API server.
	prefix  string
	resolve *request.RequestInfoFactory
	known   sets.Set[string]
}

func newVerbs(prefix string) *verbs {
	return &verbs{
		prefix:  strings.TrimSuffix(prefix, "/"),
		resolve: &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")},
		known:   Verbs(),
	}
}

// of returns the verb of a request.
func (v *verbs) of(req *http.Request) string {
	at := *req.URL
	at.Path = strings.TrimPrefix(at.Path, v.prefix)
	info, err := v.resolve.NewRequestInfo(&http.Request{Method: req.Method, URL: &at, Header: req.Header})
	if err != nil || !info.IsResourceRequest || !v.known.Has(info.Verb) {
		return OtherVerb
	}
	return info.Verb
}
