// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package dynamicclient

import (
	"bytes"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/json"
)

// objectSerializer decodes single objects in one pass. Everything else, including invalid input, goes to client-go's
// serializer, which then returns the error.
type objectSerializer struct {
	runtime.Serializer
}

// Decode implements runtime.Decoder.
func (s objectSerializer) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	u, ok := into.(*unstructured.Unstructured)
	if !ok && into != nil || defaults != nil {
		return s.Serializer.Decode(data, defaults, into)
	}
	var content map[string]any
	if err := json.UnmarshalCaseSensitivePreserveInts(data, &content); err != nil {
		return s.Serializer.Decode(data, defaults, into)
	}
	obj := unstructured.Unstructured{Object: content}
	gvk := obj.GroupVersionKind()
	_, list := content["items"]
	if gvk.Kind == "" || gvk.Version == "" || gvk.Kind == "Status" || list {
		return s.Serializer.Decode(data, defaults, into)
	}
	if u == nil {
		u = &unstructured.Unstructured{}
	}
	u.Object = content
	return u, &gvk, nil
}

// eventSerializer decodes watch events, except their objects. Events that are not formatted as by API servers go to
// client-go's serializer.
type eventSerializer struct {
	runtime.Serializer
}

// Decode implements runtime.Decoder.
func (s eventSerializer) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	event, ok := into.(*metav1.WatchEvent)
	if !ok {
		return s.Serializer.Decode(data, defaults, into)
	}
	eventType, object, ok := split(data)
	if !ok {
		return s.Serializer.Decode(data, defaults, into)
	}
	// The buffer of data is reused for the next event, but the object is decoded before that.
	event.Type, event.Object.Raw = eventType, withoutUnreadManagers(object)
	return event, &schema.GroupVersionKind{Version: "v1", Kind: "WatchEvent"}, nil
}

// split finds the parts of {"type":"...","object":{...}}, without validating the object.
func split(event []byte) (eventType string, object []byte, ok bool) {
	rest, ok := bytes.CutPrefix(bytes.TrimSpace(event), []byte(`{"type":"`))
	if !ok {
		return "", nil, false
	}
	end := bytes.IndexByte(rest, '"')
	if end < 0 || bytes.ContainsFunc(rest[:end], func(r rune) bool { return r < 'A' || r > 'Z' }) {
		return "", nil, false
	}
	eventType, rest = string(rest[:end]), rest[end:]
	rest, ok = bytes.CutPrefix(rest, []byte(`","object":`))
	if !ok {
		return "", nil, false
	}
	object, ok = bytes.CutSuffix(rest, []byte("}"))
	return eventType, object, ok && oneObject(object)
}

// oneObject reports whether a text is a single JSON object, judging by its brackets.
func oneObject(text []byte) bool {
	end, ok := valueEnd(text, 0)
	return ok && text[0] == '{' && end == len(text)
}
