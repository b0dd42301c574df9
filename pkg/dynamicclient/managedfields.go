// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package dynamicclient

import (
	"bytes"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// isRead reports whether any watcher reads an entry of managedFields: those of the managers that pkg/kindwatch is
// configured to keep. It may return true for others.
func isRead(entry []byte) bool {
	_, name, found := bytes.Cut(entry, []byte(`"manager":"`))
	if !found {
		return true // Not formatted as by API servers.
	}
	name, _, _ = bytes.Cut(name, []byte(`"`))
	return bytes.HasPrefix(name, []byte(fleetv1alpha1.LateInitFieldManager)) ||
		bytes.HasPrefix(name, []byte(fleetv1alpha1.ReferencesFieldManager)) || bytes.IndexByte(name, '\\') >= 0
}

// withoutUnreadManagers removes unread entries of managedFields from the text of an object, in place. They are a large
// part of an object, and would be decoded only to be dropped. The text need not be valid. Text that is not formatted as
// by API servers is kept.
func withoutUnreadManagers(object []byte) []byte {
	start, _, ok := member(object, 0, "metadata")
	if !ok {
		return object
	}
	start, end, ok := member(object, start, "managedFields")
	if !ok || object[start] != '[' {
		return object
	}
	var kept [][]byte
	for at := start + 1; object[at] != ']'; {
		after, ok := valueEnd(object, at)
		if !ok || after >= end || object[after] != ',' && object[after] != ']' {
			return object
		}
		if entry := object[at:after]; isRead(entry) {
			kept = append(kept, entry)
		}
		if at = after; object[at] == ',' {
			at++
		}
	}
	// Each entry moves towards the beginning, over removed ones.
	out := object[:start+1]
	for i, entry := range kept {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, entry...)
	}
	return append(out, object[end-1:]...)
}

// member returns where the value of a member begins and ends, in the object that begins at a position of a text.
func member(text []byte, at int, name string) (start, end int, ok bool) {
	if at >= len(text) || text[at] != '{' {
		return 0, 0, false
	}
	for at++; at < len(text) && text[at] == '"'; at++ {
		colon, ok := valueEnd(text, at)
		if !ok || colon+1 >= len(text) || text[colon] != ':' {
			return 0, 0, false
		}
		end, ok := valueEnd(text, colon+1)
		if !ok {
			return 0, 0, false
		}
		if string(text[at+1:colon-1]) == name {
			return colon + 1, end, true
		}
		if at = end; at >= len(text) || text[at] != ',' {
			return 0, 0, false
		}
	}
	return 0, 0, false
}

// valueEnd returns the end of the value that begins at a position of a text and has no spaces around it.
func valueEnd(text []byte, at int) (end int, ok bool) {
	depth, inString := 0, false
	for i := at; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			if inString = !inString; !inString && depth == 0 {
				return i + 1, true
			}
		case inString:
		case c == '{', c == '[':
			depth++
		case c == '}', c == ']':
			if depth == 0 {
				return i, i > at // The end of what contains a number.
			}
			if depth--; depth == 0 {
				return i + 1, true
			}
		case depth == 0 && (c == ',' || c == ':'):
			return i, i > at
		}
	}
	return 0, false
}
