// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package manyclusters

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"
)

// keptEvents is how many events are kept for a watch that is begun again, or is slow.
const keptEvents = 1024

// feed are the events of a kind for one cluster.
type feed struct {
	events []event
	// first is the number of the first event, since the version after which all are kept.
	first   int
	since   int64
	changed chan struct{}
}

func (f *feed) add(e event) {
	f.events = append(f.events, e)
	if len(f.events) > keptEvents {
		f.since = f.events[keptEvents/2-1].version
		f.events = slices.Clone(f.events[keptEvents/2:])
		f.first += keptEvents / 2
	}
	f.wake()
}

func (f *feed) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// after is the number of the first event after a version.
func (f *feed) after(version int64) int {
	for i, e := range f.events {
		if e.version > version {
			return f.first + i
		}
	}
	return f.first + len(f.events)
}

// collection answers a list or a watch.
func (p *Proxy) collection(w http.ResponseWriter, r *http.Request, c *cluster, info *request.RequestInfo) {
	v := p.view(r, c, info)
	code, answer, err := v.wait(r.Context())
	switch {
	case err != nil:
	case code != http.StatusOK:
		write(w, code, c.translate(answer))
	case info.Verb == "list":
		write(w, http.StatusOK, v.list(c, info.Namespace))
	default:
		v.watch(w, r, c, info.Namespace)
	}
}

func (v *view) list(c *cluster, namespace string) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.feedTo(c)
	var items [][]byte
	v.each(c, namespace, func(json []byte) { items = append(items, json) })
	const format = `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"%d"},"items":[%s]}`
	joined := bytes.Join(items, []byte(","))
	return c.translate(fmt.Appendf(nil, format, v.bookmark.Kind, v.bookmark.APIVersion, v.version, joined))
}

// watch sends what there is, unless the client knows it, and then each event.
func (v *view) watch(w http.ResponseWriter, r *http.Request, c *cluster, namespace string) {
	query := r.URL.Query()
	version, _ := strconv.ParseInt(query.Get("resourceVersion"), 10, 64)
	initial := query.Get("sendInitialEvents") == "true"
	var begin bytes.Buffer
	line := func(kind string, json []byte) {
		fmt.Fprintf(&begin, `{"type":%q,"object":%s}`+"\n", kind, c.translate(json))
	}
	v.mu.Lock()
	f := v.feedTo(c)
	next := f.after(version)
	switch {
	case initial || version == 0:
		next = f.first + len(f.events)
		v.each(c, namespace, func(json []byte) { line("ADDED", json) })
		if initial {
			metadata := fmt.Sprintf(`{"resourceVersion":"%d","annotations":{%q:"true"}}`, v.version, initialEnd)
			line("BOOKMARK", fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":%s}`,
				v.bookmark.Kind, v.bookmark.APIVersion, metadata))
		}
	case version < f.since:
		v.mu.Unlock()
		write(w, http.StatusGone, failure(http.StatusGone, "Expired"))
		return
	}
	v.mu.Unlock()
	write(w, http.StatusOK, begin.Bytes())
	flush := http.NewResponseController(w).Flush
	if flush() != nil {
		return
	}
	c.watches.Add(1)
	defer c.watches.Add(-1)
	var timeout <-chan time.Time
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil {
		timeout = time.After(time.Duration(seconds) * time.Second)
	}
	for {
		v.mu.Lock()
		if next < f.first {
			v.mu.Unlock()
			return // Too slow: the client lists again.
		}
		events, changed, ended := slices.Clone(f.events[next-f.first:]), f.changed, v.ended
		v.mu.Unlock()
		begin.Reset()
		for _, e := range events {
			if namespace == "" || e.kind == "BOOKMARK" || e.namespace == namespace {
				line(e.kind, e.json)
			}
		}
		next += len(events)
		if _, err := w.Write(begin.Bytes()); err != nil || flush() != nil || ended {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-timeout:
			return
		case <-changed:
		}
	}
}
