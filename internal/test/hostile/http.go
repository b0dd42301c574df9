// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

func httpAttacks() []Attack {
	return []Attack{
		{
			Name:   "never-answers",
			Harm:   "Accepts requests and never answers, so that each request holds a worker",
			Guard:  "Time-out of probes; suspects have a share of the workers",
			answer: neverAnswers,
		},
		{
			Name:     "stops-answering",
			Harm:     "Is honest until it is watched, and then answers nothing on any connection, nor closes one",
			Guard:    "Probes, pings of HTTP/2, and the disconnection after a number of failed probes",
			Connects: true,
			answer:   stopsAnswering,
		},
		{
			Name:   "huge-headers",
			Harm:   "Sends 4 MiB of headers with each answer, which an HTTP client reads before anybody can look",
			Guard:  "Limit of 1 MiB for the headers of an answer",
			answer: hugeHeaders,
		},
		{
			Name:   "endless-hints",
			Harm:   "Sends informational answers (103) without end before each answer",
			Guard:  "Time-out of probes, and the HTTP client's limit of informational answers",
			answer: endlessHints,
		},
		{
			Name:   "redirects",
			Harm:   "Redirects every request to another host, so that the manager goes there, with its token",
			Guard:  "Redirects are errors",
			answer: redirects,
		},
		{
			Name:     "redirects-lists",
			Harm:     "Redirects lists and watches to another host, and answers everything else",
			Guard:    "Redirects are errors",
			Connects: true,
			answer:   redirectsLists,
		},
		{
			Name:     "redirects-in-circles",
			Harm:     "Redirects lists and watches to themselves, so that they are sent again and again",
			Guard:    "Redirects are errors",
			Connects: true,
			answer:   redirectsInCircles,
		},
		{
			Name:   "gzip-garbage",
			Harm:   "Sends compressed garbage that was not requested, to find a decoder that fails badly",
			Guard:  "Compression is not requested and not undone",
			answer: gzipGarbage,
		},
		{
			Name:     "gzip-bomb",
			Harm:     "Sends lists that are compressed a thousand times, so that a limit of bytes on the wire is none",
			Guard:    "Compression is not requested and not undone",
			Connects: true,
			answer:   gzipBomb,
		},
		{
			Name:     "drip",
			Harm:     "Sends one byte a second of each answer but to probes, so that it never ends and never hangs",
			Guard:    "Time-outs of whole requests; places for lists are given back after ten seconds",
			Connects: true,
			answer:   dripAttack,
		},
		{
			Name:     "truncated",
			Harm:     "Breaks each list off in the middle, so that half of what there is passes for all of it",
			Guard:    "A list that does not end is an error, and nothing of it is used",
			Connects: true,
			answer:   truncated,
		},
		{
			Name:     "white-space",
			Harm:     "Sends lists of white space without end, which are small when they are decoded",
			Guard:    "Limit of the bytes of a list",
			Connects: true,
			answer:   onLists(func(_ *Server, a *answer, _ *request) { a.endless(" ") }),
		},
	}
}

func neverAnswers(_ *Server, _ http.ResponseWriter, r *request) bool {
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// stopsAnswering begins to hang with the tenth watch, when the client has settled down.
func stopsAnswering(s *Server, w http.ResponseWriter, r *request) bool {
	const settled = 10
	if r.verb == verbWatch {
		s.count("watches")
	}
	s.mu.Lock()
	hangs := s.state["watches"] >= settled || s.state["hangs"] > 0
	if hangs {
		s.state["hangs"]++
	}
	s.mu.Unlock()
	return hangs && neverAnswers(s, w, r)
}

func hugeHeaders(_ *Server, w http.ResponseWriter, _ *request) bool {
	value := strings.Repeat("x", 64<<10)
	for i := range 64 {
		w.Header().Set("X-Huge-"+strconv.Itoa(i), value)
	}
	return false
}

func endlessHints(s *Server, w http.ResponseWriter, r *request) bool {
	w.Header().Set("Link", "<"+strings.Repeat("x", 1<<10)+">")
	for sent := int64(0); sent < s.options.MaxBytes && r.Context().Err() == nil; sent += 1 << 10 {
		w.WriteHeader(http.StatusEarlyHints)
	}
	panic(http.ErrAbortHandler)
}

func redirects(s *Server, w http.ResponseWriter, r *request) bool {
	http.Redirect(w, r.Request, s.trap.URL+r.URL.Path, http.StatusTemporaryRedirect)
	return true
}

func redirectsLists(s *Server, w http.ResponseWriter, r *request) bool {
	return (r.verb == verbList || r.verb == verbWatch) && redirects(s, w, r)
}

func redirectsInCircles(_ *Server, w http.ResponseWriter, r *request) bool {
	if r.verb != verbList && r.verb != verbWatch {
		return false
	}
	http.Redirect(w, r.Request, r.URL.RequestURI(), http.StatusFound)
	return true
}

// zipped is a member of a gzip stream. Any number of members can follow one another.
func zipped(text string) []byte {
	var buffer bytes.Buffer
	z, _ := gzip.NewWriterLevel(&buffer, gzip.BestCompression)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return buffer.Bytes()
}

func gzipGarbage(s *Server, w http.ResponseWriter, r *request) bool {
	if r.URL.Path == "/readyz" {
		return false
	}
	w.Header().Set("Content-Encoding", "gzip")
	a := s.begin(w, r)
	a.write(zipped("{")[:10])
	a.times(chunk, "\xff\x00\x1f\x8b")
	return true
}

func gzipBomb(s *Server, w http.ResponseWriter, r *request) bool {
	if r.verb != verbList && r.verb != verbWatch {
		return false
	}
	w.Header().Set("Content-Encoding", "gzip")
	a := s.begin(w, r)
	if a.write(zipped(s.listHead(r))) {
		a.endless(string(zipped(strings.Repeat("{},", 1<<20))))
	}
	return true
}

func dripAttack(s *Server, w http.ResponseWriter, r *request) bool {
	if r.isProbe() {
		return false
	}
	s.drip(s.begin(w, r), s.listHead(r))
	return true
}

func truncated(s *Server, w http.ResponseWriter, r *request) bool {
	return onLists(func(s *Server, a *answer, r *request) {
		a.text("%s%s,", s.listHead(r), s.item(r, "half", 1))
		a.sent()
		panic(http.ErrAbortHandler)
	})(s, w, r)
}

// onLists answers the lists of all kinds. It refuses a list as a stream like an API server without streaming lists, so
// that the client lists in pages.
func onLists(do func(s *Server, a *answer, r *request)) func(*Server, http.ResponseWriter, *request) bool {
	return func(s *Server, w http.ResponseWriter, r *request) bool {
		if refusesStreams(w, r) {
			return true
		}
		if r.verb != verbList {
			return false
		}
		do(s, s.begin(w, r), r)
		return true
	}
}

func refusesStreams(w http.ResponseWriter, r *request) bool {
	if r.verb == verbWatch && r.initialEvents {
		answerStatus(w, http.StatusUnprocessableEntity, "Invalid", "sendInitialEvents is forbidden")
		return true
	}
	return false
}

// requestType is the type of the requested objects.
func (s *Server) requestType(r *request) (apiVersion, kind string) {
	if r.metadataOnly {
		return "meta.k8s.io/v1", "PartialObjectMetadata"
	}
	served := s.servedFor(r)
	return served.groupVersion(), served.kind
}

// servedFor is what the honest API server serves at the path of a request.
func (s *Server) servedFor(r *request) resource {
	h := s.options.Honest
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, served := range h.resources {
		if served.group == r.group && served.name == r.resource {
			return served
		}
	}
	return resource{version: "v1", name: "things", kind: "Thing"}
}

// listHead is the text of a list up to its first item.
func (s *Server) listHead(r *request) string {
	apiVersion, kind := s.requestType(r)
	return fmt.Sprintf(`{"kind":"%sList","apiVersion":"%s","metadata":{"resourceVersion":"1"},"items":[`, kind, apiVersion)
}

// item is an object of the requested kind.
func (s *Server) item(r *request, name string, version int) string {
	return s.itemWith(r, name, version, "", "")
}

// itemWith is an item with more fields, each after a comma, in its metadata and beside it.
func (s *Server) itemWith(r *request, name string, version int, metadata, fields string) string {
	apiVersion, kind := s.requestType(r)
	if s.servedFor(r).namespaced {
		namespace := r.namespace
		if namespace == "" {
			namespace = "default"
		}
		metadata = fmt.Sprintf(`,"namespace":"%s"%s`, namespace, metadata)
	}
	return fmt.Sprintf(`{"apiVersion":"%s","kind":"%s","metadata":{"name":"%s","uid":"uid-of-%s","resourceVersion":"%d"%s}%s}`,
		apiVersion, kind, name, name, version, metadata, fields)
}
