// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
)

// Limits are how many bytes of an answer are read. What is larger ends with an error that says so. client-go reads an
// answer into memory whole, as it was sent and then once more decoded, so that without a limit one request would be
// enough for an API server to end this process, and with it every other connection.
type Limits struct {
	// Object is the limit of whatever is neither a list nor a watch: objects, which are two MiB at most in etcd, errors,
	// and discovery. Default 8 MiB.
	Object int64
	// List is the limit of one answer to a GET of a collection. Default 64 MiB.
	List int64
	// WatchEvent is the limit of one event of a watch. A watch as a whole has none: it is meant to go on. Default 8 MiB.
	WatchEvent int64
}

// Defaults of Limits.
const (
	DefaultObjectLimit     = 8 << 20
	DefaultListLimit       = 64 << 20
	DefaultWatchEventLimit = 8 << 20
)

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		limit *int64
		value int64
	}{{&l.Object, DefaultObjectLimit}, {&l.List, DefaultListLimit}, {&l.WatchEvent, DefaultWatchEventLimit}} {
		if *d.limit <= 0 {
			*d.limit = d.value
		}
	}
	return l
}

// errAnswerTooLarge says that an API server sent more than is read.
var errAnswerTooLarge = errors.New("the API server's answer is too large")

// tooLarge names the request, since that is what somebody who has to raise a limit needs to know.
func tooLarge(req *http.Request, what string, limit int64) error {
	return fmt.Errorf("%w: %s %s: more than %d bytes in one %s", errAnswerTooLarge, req.Method, req.URL.Path, limit, what)
}

// limitAnswer has the body of an answer end with an error where it becomes too large. pathPrefix is the path of the API
// server's address.
func limitAnswer(resp *http.Response, req *http.Request, pathPrefix string, l Limits) error {
	if isWatch(req) && resp.StatusCode == http.StatusOK {
		if !isProtobuf(resp.Header) { // Of protobuf, client-go itself takes frames of 16 MiB at most.
			resp.Body = &limitedEvents{ReadCloser: resp.Body, limit: l.WatchEvent, err: tooLarge(req, "event", l.WatchEvent)}
		}
		return nil
	}
	limit, what := l.Object, "answer"
	path := strings.TrimPrefix(req.URL.Path, strings.TrimSuffix(pathPrefix, "/"))
	if req.Method == http.MethodGet && resp.StatusCode == http.StatusOK && isCollection(path) {
		limit, what = l.List, "list"
	}
	if resp.ContentLength > limit {
		_ = resp.Body.Close()
		return tooLarge(req, what, limit)
	}
	resp.Body = &limitedBody{ReadCloser: resp.Body, left: limit, err: tooLarge(req, what, limit)}
	return nil
}

func isProtobuf(h http.Header) bool {
	mediaType, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && strings.HasPrefix(mediaType, "application/vnd.kubernetes.protobuf")
}

// isCollection says whether a path of an API server names all objects of a kind, in one namespace or in all, and not one
// object, or discovery:
//
//	/api/v1/<resource>[/<name>[/<subresource>]]
//	/apis/<group>/<version>/<resource>[/<name>[/<subresource>]]
//
// with namespaces/<namespace>/ before the resource or not. A subresource of a Namespace looks like a collection, and has
// its limit.
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

// limitedBody is a body of which only so many bytes are read.
type limitedBody struct {
	io.ReadCloser
	left int64
	err  error
}

// Read reads one byte more than is allowed, to tell a body that ends there from one that does not.
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, b.err
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return n - 1, b.err
	}
	return n, err
}

// limitedEvents is the body of a watch, a stream of JSON objects, of which each may have so many bytes. client-go's
// decoder reads an object to its end before it looks at its size. The objects are found by their braces: what is not
// JSON is never found to end, and so is limited as a whole.
type limitedEvents struct {
	io.ReadCloser
	limit int64
	err   error

	size     int64 // of the present event, with the white space before it
	depth    int
	inString bool
	escaped  bool
	over     bool
}

// Read passes on what belongs to events that are not too large.
func (b *limitedEvents) Read(p []byte) (int, error) {
	if b.over {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p)
	for i, c := range p[:n] {
		if b.size++; b.size > b.limit {
			b.over = true
			return i, b.err
		}
		b.next(c)
	}
	return n, err
}

// next follows the nesting of a JSON text.
func (b *limitedEvents) next(c byte) {
	switch {
	case b.escaped:
		b.escaped = false
	case b.inString:
		b.escaped, b.inString = c == '\\', c != '"'
	case c == '"':
		b.inString = true
	case c == '{' || c == '[':
		b.depth++
	case (c == '}' || c == ']') && b.depth > 0:
		if b.depth--; b.depth == 0 {
			b.size = 0
		}
	}
}
