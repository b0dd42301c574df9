// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// maxBody is how much of a request is read.
const maxBody = 16 << 20

// write creates, changes or deletes an object.
func (h *Honest) write(w http.ResponseWriter, r *request, s resource) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var body map[string]any
	if err == nil && r.verb != verbDelete {
		err = unmarshal(r, data, &body)
	}
	if err != nil {
		answerStatus(w, http.StatusBadRequest, "BadRequest", "the body cannot be read")
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	name := r.name
	if r.verb == verbCreate {
		name = getString(getMetadata(body), "name")
	}
	key := r.namespace + "/" + name
	have := h.objects[s.key()][key]
	applies := r.verb == verbPatch && r.Header.Get("Content-Type") == "application/apply-patch+yaml"
	switch {
	case name == "":
		answerStatus(w, http.StatusUnprocessableEntity, "Invalid", "the object has no name")
	case r.verb == verbCreate && have != nil:
		answerStatus(w, http.StatusConflict, "AlreadyExists", s.name+` "`+name+`" already exists`)
	case r.verb == verbCreate, applies && have == nil:
		m := getMetadata(body)
		m["name"] = name
		if r.namespace != "" {
			m["namespace"] = r.namespace
		}
		answerJSON(w, http.StatusCreated, h.put(s, body))
	case have == nil:
		answerStatus(w, http.StatusNotFound, "NotFound", s.name+` "`+name+`" not found`)
	case r.verb == verbDelete:
		h.delete(w, s, key, have)
	case isStale(body, have):
		answerStatus(w, http.StatusConflict, "Conflict", "the object has been modified")
	case r.verb == verbUpdate:
		if status, ok := have["status"]; ok && body["status"] == nil {
			body["status"] = status
		}
		answerJSON(w, http.StatusOK, h.put(s, body))
	default:
		delete(getMetadata(body), "resourceVersion")
		answerJSON(w, http.StatusOK, h.put(s, merged(have, body)))
	}
}

func unmarshal(r *request, data []byte, into *map[string]any) error {
	if strings.HasSuffix(r.Header.Get("Content-Type"), "yaml") {
		return yaml.Unmarshal(data, into)
	}
	return json.Unmarshal(data, into)
}

func isStale(body, have map[string]any) bool {
	version := getString(getMetadata(body), "resourceVersion")
	return version != "" && version != getString(getMetadata(have), "resourceVersion")
}

func (h *Honest) delete(w http.ResponseWriter, s resource, key string, have map[string]any) {
	if hasFinalizers(have) {
		object := clone(have)
		getMetadata(object)["deletionTimestamp"] = time.Now().UTC().Format(time.RFC3339)
		h.tell("MODIFIED", s, object)
		h.objects[s.key()][key] = object
		answerJSON(w, http.StatusOK, object)
		return
	}
	answerJSON(w, http.StatusOK, h.remove(s, key))
}

// merged is an object with a merge patch applied. A server-side apply is treated as a merge patch: field ownership is
// not kept.
func merged(object, patch map[string]any) map[string]any {
	out := map[string]any{}
	maps.Copy(out, object)
	for k, v := range patch {
		changes, isMap := v.(map[string]any)
		old, _ := out[k].(map[string]any)
		switch {
		case v == nil:
			delete(out, k)
		case isMap:
			out[k] = merged(old, changes)
		default:
			out[k] = v
		}
	}
	return out
}
