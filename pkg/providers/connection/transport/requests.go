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
	// OtherVerb is the verb of a request that is not about a resource.
	OtherVerb = "other"
	// NoAnswer is the code of a request without an answer.
	NoAnswer = "none"
)

// Verbs are the verbs that are told apart, so that what a path looks like makes no series.
func Verbs() sets.Set[string] {
	return sets.New("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
}

// Counts counts the requests to one cluster, over all its connections. A request that ends when the cluster is
// forgotten is not counted, so that no series comes back. A nil *Counts counts nothing.
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

// Add counts a request that was sent and what came of it.
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

// End has nothing be counted any more.
func (c *Counts) End() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// codeClass is the class of the status code of an answer, of which the cluster can choose the code.
func codeClass(resp *http.Response) string {
	if resp == nil || resp.StatusCode < 100 || resp.StatusCode > 599 {
		return NoAnswer
	}
	return strconv.Itoa(resp.StatusCode/100) + "xx"
}

// verbs says what requests ask for, as their API server understands it.
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

// of is the verb of a request.
func (v *verbs) of(req *http.Request) string {
	at := *req.URL
	at.Path = strings.TrimPrefix(at.Path, v.prefix)
	info, err := v.resolve.NewRequestInfo(&http.Request{Method: req.Method, URL: &at, Header: req.Header})
	if err != nil || !info.IsResourceRequest || !v.known.Has(info.Verb) {
		return OtherVerb
	}
	return info.Verb
}
