// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Watch is an open watch. Its events wait until they are delivered.
type Watch struct {
	Resource schema.GroupResource

	// Client is the User-Agent of the watcher.
	Client string

	server    *Server
	call      *call
	selected  func(*unstructured.Unstructured) bool
	bookmarks bool
	pending   []event
	stream    *stream
	began     time.Time
	delivered bool
}

// event is an event of a watch. A bookmark has no object, but the version that it confirms.
type event struct {
	Type    watch.EventType
	object  *unstructured.Unstructured
	version int64
	initial bool
}

// watch begins a watch.
func (s *Server) watch(c *call) *http.Response {
	selected, err := c.selects()
	if err != nil {
		return Refuse(c.Request, err)
	}
	if c.namespace != "" && c.name != "" {
		return Refuse(c.Request, apierrors.NewMethodNotSupported(c.kind.groupResource(), "watch"))
	}
	q := c.URL.Query()
	w := &Watch{
		Resource: c.kind.groupResource(), Client: c.UserAgent(), server: s, call: c, selected: selected,
		bookmarks: q.Get("allowWatchBookmarks") == "true", stream: newStream(),
		began: time.Now(),
	}
	from, _ := strconv.ParseInt(q.Get("resourceVersion"), 10, 64)
	initial := q.Get("sendInitialEvents") == "true"
	switch {
	case from == 0 || initial:
		for _, obj := range s.list(w.Resource) {
			if selected(obj) {
				w.pending = append(w.pending, event{Type: watch.Added, object: obj})
			}
		}
		if initial {
			w.pending = append(w.pending, event{Type: watch.Bookmark, version: s.version, initial: true})
		}
	case from < s.compacted:
		w.stream.write(w.encode(event{Type: watch.Error}))
		w.stream.end(io.EOF)
	default:
		for _, change := range s.log {
			if change.version > from {
				w.note(change)
			}
		}
	}
	if w.stream.open() {
		s.watches = append(s.watches, w)
		w.closeAfter(c.Context(), q.Get("timeoutSeconds"))
	}
	resp := respond(c.Request, http.StatusOK, nil)
	resp.Body, resp.ContentLength = w.stream, -1
	return resp
}

// closeAfter ends the watch when its client leaves, and after the time that the client wants it to last at most.
func (w *Watch) closeAfter(ctx context.Context, seconds string) {
	// Any other error than EOF can leave a goroutine of a metadata informer of controller-runtime behind: watch.Filter
	// sends it to a reader that has left. No bubble ends with that.
	stop := context.AfterFunc(ctx, func() { w.remove(io.EOF) })
	w.stream.closed = func() { stop(); w.remove(io.EOF) }
	if n, err := strconv.Atoi(seconds); err == nil {
		t := time.AfterFunc(time.Duration(n)*time.Second, func() { w.remove(io.EOF) })
		closed := w.stream.closed
		w.stream.closed = func() { t.Stop(); closed() }
	}
}

func (w *Watch) remove(err error) {
	w.server.mu.Lock()
	w.server.watches = slices.DeleteFunc(w.server.watches, func(other *Watch) bool { return other == w })
	w.server.mu.Unlock()
	w.stream.end(err)
}

// note adds what a change means for the watch.
func (w *Watch) note(change Change) {
	if change.Key.GroupResource != w.Resource {
		return
	}
	was, is := change.Old != nil && w.selected(change.Old), change.New != nil && w.selected(change.New)
	switch {
	case !was && is:
		w.pending = append(w.pending, event{Type: watch.Added, object: change.New})
	case was && is:
		w.pending = append(w.pending, event{Type: watch.Modified, object: change.New})
	case was && !is:
		last := change.Old.DeepCopy()
		last.SetResourceVersion(strconv.FormatInt(change.version, 10))
		w.pending = append(w.pending, event{Type: watch.Deleted, object: last})
	}
}

// Watches returns the open watches, oldest first.
func (s *Server) Watches() []*Watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.watches)
}

// Pending is the number of events that are not delivered.
func (w *Watch) Pending() int {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	return len(w.pending)
}

// Deliver sends the next event, or a bookmark if there is none and the watcher wants bookmarks.
func (w *Watch) Deliver() {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.delivered = true
	switch {
	case len(w.pending) > 0:
		e := w.pending[0]
		w.pending = w.pending[1:]
		w.stream.write(w.encode(e))
	case w.bookmarks:
		w.stream.write(w.encode(event{Type: watch.Bookmark, version: w.server.version}))
	}
}

// IsBrief reports whether a client that loses the watch now lists again, as client-go does after less than a second
// without an event.
func (w *Watch) IsBrief() bool {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	return !w.delivered && time.Since(w.began) < time.Second
}

// Disconnect ends the watch in the middle, as a lost connection does.
func (w *Watch) Disconnect() { w.remove(io.ErrUnexpectedEOF) }

// Expire forgets all changes so far, and ends every watch with the error for that.
func (s *Server) Expire() {
	s.mu.Lock()
	s.compacted, s.log = s.version, nil
	watches := s.watches
	s.watches = nil
	s.mu.Unlock()
	for _, w := range watches {
		w.stream.write(w.encode(event{Type: watch.Error}))
		w.stream.end(io.EOF)
	}
}

// Lose removes the objects of a resource without a trace, as if the server had been restored from a backup without
// them.
func (s *Server) Lose(resource schema.GroupResource) {
	for _, obj := range s.List(resource) {
		s.Remove(Key{resource, types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}})
	}
	s.mu.Lock()
	for _, w := range s.watches {
		w.pending = nil
	}
	s.mu.Unlock()
	s.Expire()
}

func (w *Watch) encode(e event) []byte {
	var object any
	switch {
	case e.Type == watch.Error:
		status := newStatus(apierrors.NewResourceExpired("too old resource version"))
		object = status
	case e.object != nil:
		object = w.call.shown(e.object)
	default:
		meta := map[string]any{"resourceVersion": strconv.FormatInt(e.version, 10)}
		if e.initial {
			meta["annotations"] = map[string]any{metav1.InitialEventsAnnotationKey: "true"}
		}
		bookmark := map[string]any{"metadata": meta, "kind": w.call.kind.gvk.Kind, "apiVersion": w.call.kind.gvk.GroupVersion().String()}
		if w.call.metadata {
			bookmark["kind"], bookmark["apiVersion"] = "PartialObjectMetadata", "meta.k8s.io/v1"
		}
		object = bookmark
	}
	encoded, err := json.Marshal(map[string]any{"type": e.Type, "object": object})
	if err != nil {
		panic(fmt.Errorf("cannot encode an event: %w", err))
	}
	return append(encoded, '\n')
}

// stream is the body of a response that is not complete. Its condition variable allows it to block in a bubble.
type stream struct {
	mu     sync.Mutex
	more   *sync.Cond
	data   []byte
	err    error
	closed func()
}

func newStream() *stream {
	s := &stream{closed: func() {}}
	s.more = sync.NewCond(&s.mu)
	return s
}

func (s *stream) open() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err == nil
}

func (s *stream) write(data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.data = append(s.data, data...)
		s.more.Broadcast()
	}
}

func (s *stream) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		s.more.Broadcast()
	}
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.data) == 0 && s.err == nil {
		s.more.Wait()
	}
	if len(s.data) == 0 {
		return 0, s.err
	}
	n := copy(p, s.data)
	s.data = s.data[n:]
	return n, nil
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.closed()
	return nil
}
