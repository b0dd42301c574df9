// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/masthead-dev/masthead/pkg/guard"
	"github.com/masthead-dev/masthead/pkg/limits"
)

// onlyJSON restricts the Accept header of a request to JSON, which is scanned before it is decoded. client-go prefers
// protobuf or CBOR, and accepts YAML, whose aliases amplify the most.
func onlyJSON(h http.Header) {
	var kept []string
	for _, v := range h.Values("Accept") {
		for part := range strings.SplitSeq(v, ",") {
			if mediaType, _, err := mime.ParseMediaType(part); err == nil && mediaType == mediaTypeJSON {
				kept = append(kept, strings.TrimSpace(part))
			}
		}
	}
	if len(kept) == 0 {
		kept = []string{mediaTypeJSON}
	}
	h.Set("Accept", strings.Join(kept, ","))
}

const (
	mediaTypeJSON = "application/json"

	// maxText is how much of a plain-text response is read. Such responses are not decoded.
	maxText = 64 << 10
)

// boundAnswer makes the body of a response end with an error where it exceeds a limit, or refuses the response at once
// because of its header. pathPrefix is the path of the API server's address. open opens the account of the response.
// refused is called for every refusal.
func boundAnswer(
	resp *http.Response, req *http.Request, pathPrefix string, l Limits, open func(abort func(error)) limits.Charge, refused func(error),
) error {
	err := bound(resp, req, pathPrefix, l, open, refused)
	if err != nil {
		_ = resp.Body.Close()
		refused(err)
	}
	return err
}

func bound(
	resp *http.Response, req *http.Request, pathPrefix string, l Limits, open func(abort func(error)) limits.Charge, refused func(error),
) error {
	subject, bounds := responseLimits(resp, req, pathPrefix, l)
	failed := resp.StatusCode < 200 || resp.StatusCode >= 300
	switch encoding := resp.Header.Get("Content-Encoding"); {
	case resp.StatusCode < 200 || resp.StatusCode >= 300 && resp.StatusCode < 400:
		return &limits.Error{Subject: subject, Limit: limits.LimitRedirect}
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		return &limits.Error{Subject: subject, Limit: limits.LimitEncoding}
	case resp.ContentLength > bounds.Bytes:
		return &limits.Error{Subject: subject, Limit: limits.LimitBytes, Max: bounds.Bytes}
	}
	contentType := resp.Header.Get("Content-Type")
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		mediaType = ""
	}
	switch {
	case contentType == "":
		// client-go would assume the request's content type, which can be protobuf.
		resp.Header.Set("Content-Type", mediaTypeJSON)
	case mediaType == mediaTypeJSON:
	case mediaType == "text/plain" && subject != subjectEvent:
		// Used by /readyz and many errors. No decoder accepts it, except for that of events.
		resp.Body = limits.Text(resp.Body, maxText)
		return nil
	case failed:
		// Of an error from a proxy in front of the API server, only the status matters.
		resp.Header.Set("Content-Type", "text/plain")
		resp.Body = limits.Text(resp.Body, 0)
		resp.ContentLength = -1
		return nil
	default:
		return &limits.Error{Subject: subject, Limit: limits.LimitContentType}
	}
	scanner := limits.NewScanner(subject, bounds)
	if subject == subjectEvent {
		scanner = limits.NewStreamScanner(subject, bounds)
	}
	resp.Body = limits.NewBody(req.Context(), resp.Body, scanner, open, refused)
	return nil
}

// Subjects of refusals.
const (
	subjectAnswer = "answer"
	subjectList   = "list"
	subjectEvent  = "event"
)

// responseLimits returns the subject and the limits of a response.
func responseLimits(resp *http.Response, req *http.Request, pathPrefix string, l Limits) (string, limits.Limits) {
	switch {
	case resp.StatusCode >= 300:
		return subjectAnswer, l.Failure
	case isWatch(req):
		return subjectEvent, l.Event
	case isList(req, pathPrefix):
		return subjectList, l.List
	default:
		return subjectAnswer, l.Object
	}
}

// isList reports whether a request lists all objects of a kind.
func isList(req *http.Request, pathPrefix string) bool {
	return req.Method == http.MethodGet && isCollection(strings.TrimPrefix(req.URL.Path, strings.TrimSuffix(pathPrefix, "/")))
}

// isCollection reports whether an API path is a collection, in one namespace or in all, not a single object or
// discovery:
//
//	/api/v1/<resource>[/<name>[/<subresource>]]
//	/apis/<group>/<version>/<resource>[/<name>[/<subresource>]]
//
// optionally with namespaces/<namespace>/ before the resource. A subresource of a Namespace looks like a collection,
// and has its limit.
func isCollection(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:]
	default:
		return false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	return len(parts) == 1
}

// guardedBody is the body of a response. It is read in goroutines of other libraries, where a panic would end the
// process.
type guardedBody struct {
	io.ReadCloser
	guard *guard.Guard
	err   error
}

// Read implements io.Reader.
func (b *guardedBody) Read(p []byte) (n int, err error) {
	if b.err != nil {
		return 0, b.err
	}
	err = b.guard.Run("reading an answer", func() (err error) {
		n, err = b.ReadCloser.Read(p)
		return err
	})
	if _, ok := errors.AsType[*guard.Panic](err); ok {
		n, b.err = 0, err
	}
	return n, err
}
