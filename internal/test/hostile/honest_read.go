// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// selection is which objects are requested, and in which form.
type selection struct {
	labels       labels.Selector
	fields       fields.Selector
	namespace    string
	metadataOnly bool
}

func parseSelection(r *request) (selection, error) {
	s := selection{namespace: r.namespace, metadataOnly: r.metadataOnly}
	query := r.URL.Query()
	var err error
	if s.labels, err = labels.Parse(query.Get("labelSelector")); err != nil {
		return s, err
	}
	s.fields, err = fields.ParseSelector(query.Get("fieldSelector"))
	return s, err
}

func (s selection) matches(object map[string]any) bool {
	m := getMetadata(object)
	if s.namespace != "" && getString(m, "namespace") != s.namespace {
		return false
	}
	set := labels.Set{}
	all, _ := m["labels"].(map[string]any)
	for k := range all {
		set[k] = getString(all, k)
	}
	return s.labels.Matches(set) && s.fields.Matches(fields.Set{
		"metadata.name": getString(m, "name"), "metadata.namespace": getString(m, "namespace"), "type": getString(object, "type"),
	})
}

// shown is an object in the requested form.
func (s selection) shown(object map[string]any) map[string]any {
	if s.metadataOnly {
		return map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"]}
	}
	return object
}

// each calls a function for each object of a resource from an index on, with the index of the next, until it returns
// false. Objects of a collection come first, and are created one by one.
func (h *Honest) each(r resource, from int, do func(object map[string]any, next int) bool) {
	h.mu.Lock()
	c := h.collections[r.key()]
	stored := h.objects[r.key()]
	written := make([]map[string]any, 0, len(stored))
	for _, key := range slices.Sorted(maps.Keys(stored)) {
		written = append(written, stored[key])
	}
	h.mu.Unlock()
	for i := from; i < c.Count+len(written); i++ {
		var object map[string]any
		if i < c.Count {
			object = made(c.Object(i), r, i)
		} else {
			object = written[i-c.Count]
		}
		if !do(object, i+1) {
			return
		}
	}
}

// made completes an object of a collection.
func made(object map[string]any, r resource, i int) map[string]any {
	object["apiVersion"], object["kind"] = r.groupVersion(), r.kind
	m := getMetadata(object)
	if getString(m, "uid") == "" {
		m["uid"] = "00000000-0000-4000-8000-" + strconv.FormatInt(int64(i)+0x100000000000, 16)
	}
	if getString(m, "resourceVersion") == "" {
		m["resourceVersion"] = "1"
	}
	if getString(m, "creationTimestamp") == "" {
		m["creationTimestamp"] = "2026-01-01T00:00:00Z"
	}
	if m["generation"] == nil {
		m["generation"] = 1
	}
	return object
}

// list sends a page, or everything, object by object.
func (h *Honest) list(w http.ResponseWriter, r *request, s resource) {
	selected, err := parseSelection(r)
	if err != nil {
		answerStatus(w, http.StatusBadRequest, "BadRequest", "the selector cannot be read")
		return
	}
	apiVersion, kind := s.groupVersion(), s.kind+"List"
	if selected.metadataOnly {
		apiVersion, kind = "meta.k8s.io/v1", "PartialObjectMetadataList"
	}
	h.mu.Lock()
	version := h.version
	h.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	encoder, sent, next := json.NewEncoder(w), 0, 0
	_, _ = w.Write([]byte(`{"kind":"` + kind + `","apiVersion":"` + apiVersion + `","items":[`))
	h.each(s, r.from, func(object map[string]any, following int) bool {
		if !selected.matches(object) {
			return r.Context().Err() == nil
		}
		if r.limit > 0 && sent == r.limit {
			next = following - 1
			return false
		}
		if sent++; sent > 1 {
			_, _ = w.Write([]byte(","))
		}
		return encoder.Encode(selected.shown(object)) == nil
	})
	more := ""
	if next > 0 {
		more = `,"continue":"` + strconv.Itoa(next) + `"`
	}
	_, _ = w.Write([]byte(`],"metadata":{"resourceVersion":"` + strconv.FormatInt(version, 10) + `"` + more + `}}`))
}

func (h *Honest) get(w http.ResponseWriter, r *request, s resource) {
	var found map[string]any
	h.mu.Lock()
	found = h.objects[s.key()][r.namespace+"/"+r.name]
	h.mu.Unlock()
	if found == nil {
		h.each(s, 0, func(object map[string]any, _ int) bool {
			if objectKey(object) == r.namespace+"/"+r.name {
				found = object
			}
			return found == nil && r.Context().Err() == nil
		})
	}
	if found == nil {
		answerStatus(w, http.StatusNotFound, "NotFound", s.name+` "`+r.name+`" not found`)
		return
	}
	answerJSON(w, http.StatusOK, selection{metadataOnly: r.metadataOnly}.shown(found))
}

// watch reports changes. If the request asks for initial events, the existing objects come first.
func (h *Honest) watch(w http.ResponseWriter, r *request, s resource) {
	selected, err := parseSelection(r)
	if err != nil {
		answerStatus(w, http.StatusBadRequest, "BadRequest", "the selector cannot be read")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	control, encoder := http.NewResponseController(w), json.NewEncoder(w)
	tell := func(eventType string, object map[string]any) bool {
		return encoder.Encode(map[string]any{"type": eventType, "object": object}) == nil
	}
	since, err := strconv.ParseInt(r.URL.Query().Get("resourceVersion"), 10, 64)
	h.mu.Lock()
	if err != nil || since <= 0 || r.initialEvents {
		since = h.version
	}
	gone := len(h.changes) > 0 && since < h.changes[0].version-1
	h.mu.Unlock()
	if gone {
		tell("ERROR", map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": http.StatusGone})
		return
	}
	if r.initialEvents {
		h.each(s, 0, func(object map[string]any, _ int) bool {
			return !selected.matches(object) || tell("ADDED", selected.shown(object))
		})
		tell("BOOKMARK", h.bookmark(selected, s, since))
	}
	for {
		h.mu.Lock()
		changed, changes := h.changed, h.changes
		h.mu.Unlock()
		for _, c := range changes {
			if c.version > since && c.resource == s.key() && selected.matches(c.object) && !tell(c.eventType, selected.shown(c.object)) {
				return
			}
			since = max(since, c.version)
		}
		if control.Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func (*Honest) bookmark(selected selection, s resource, version int64) map[string]any {
	return selected.shown(map[string]any{"apiVersion": s.groupVersion(), "kind": s.kind, "metadata": map[string]any{
		"resourceVersion": strconv.FormatInt(version, 10), "annotations": map[string]any{"k8s.io/initial-events-end": "true"},
	}})
}
