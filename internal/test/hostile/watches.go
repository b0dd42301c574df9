// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"net/http"
	"strings"
)

func watchAttacks() []Attack {
	return []Attack{
		{
			Name: "endless-events", Connects: true,
			Harm:   "Has a watch that never stops to bring new objects, so that what is kept of the kind grows",
			Guard:  "Budgets of a kind, and of what is kept of all",
			answer: onWatches(endlessEvents),
		},
		{
			Name: "repeated-events", Connects: true,
			Harm:   "Sends each event a thousand times, so that everything that follows from it is done a thousand times",
			Guard:  "An object that is the same is no event; events of one object are one entry of a queue",
			answer: onWatches(repeatedEvents),
		},
		{
			Name: "foreign-events", Connects: true,
			Harm:   "Sends events about objects of other kinds, groups and namespaces",
			Guard:  "An object is of the kind that was requested, with a name and a namespace, or is dropped",
			answer: onWatches(foreignEvents),
		},
		{
			Name: "endless-bookmarks", Connects: true,
			Harm:  "Sends bookmarks without end, which keep the client busy and change nothing",
			Guard: "A bookmark costs one decoding and no event; a watch is ended by its time-out",
			answer: onWatches(func(s *Server, a *answer, r *request) {
				apiVersion, kind := s.requestType(r)
				a.endless(`{"type":"BOOKMARK","object":{"apiVersion":"` + apiVersion + `","kind":"` + kind +
					`","metadata":{"resourceVersion":"1"}}}` + "\n")
			}),
		},
		{
			Name: "endless-event", Connects: true,
			Harm:  "Sends one event that does not end",
			Guard: "Limit of the bytes of an event, before it is decoded",
			answer: onWatches(func(_ *Server, a *answer, _ *request) {
				a.text(`{"type":"ADDED","object":{"metadata":{"name":"x"},"spec":"`)
				a.endless("x")
			}),
		},
		{
			Name: "event-of-elements", Connects: true,
			Harm:  "Sends events of 7 MiB of empty elements, each of which takes a hundred times as much when it is decoded",
			Guard: "Limit of the elements of an event, before it is decoded",
			answer: onWatches(func(s *Server, a *answer, r *request) {
				head := `{"type":"ADDED","object":` + strings.TrimSuffix(s.itemWith(r, "elements", 2, "", `,"spec":{"a":[{}`), "}")
				for a.text("%s", head) && a.times(7<<20/3, ",{}") && a.text("]}}}\n") { //nolint:revive // The condition does the work.
				}
			}),
		},
		{
			Name: "deep-events", Connects: true,
			Harm:  "Sends events that are nested without end",
			Guard: "Limit of the depth of an event, before it is decoded",
			answer: onWatches(func(_ *Server, a *answer, _ *request) {
				a.text(`{"type":"ADDED","object":`)
				a.endless(`{"a":[`)
			}),
		},
		{
			Name: "error-events", Connects: true,
			Harm:  "Sends events that are errors, with long messages, so that everything is listed again",
			Guard: "Back-off between lists; messages are cut",
			answer: onWatches(func(_ *Server, a *answer, _ *request) {
				a.text(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"%s"}}`+"\n",
					strings.Repeat("\x1b[2J", 1<<16))
			}),
		},
		{
			Name: "ending-watches", Connects: true,
			Harm:   "Ends each watch as soon as it has begun, so that it is begun again and again",
			Guard:  "Back-off between watches",
			answer: onWatches(func(_ *Server, a *answer, _ *request) { a.sent() }),
		},
		{
			Name: "malformed-events", Connects: true,
			Harm:   "Sends events whose fields have the wrong types, to find a decoder or a controller that panics",
			Guard:  "What cannot be decoded ends the watch; a panic costs the cluster its connection, not the process",
			answer: onWatches(malformedEvents),
		},
		{
			Name: "silent-streams", Connects: true,
			Harm:   "Begins to list a kind as a stream and never sends anything, so that the client does not learn whether there are objects",
			Guard:  "Places for lists are given back after ten seconds; the watch is ended by its time-out",
			answer: silentStreams,
		},
		{
			Name: "endless-streams", Connects: true,
			Harm:   "Lists a kind as a stream that never ends",
			Guard:  "Budgets of a kind, counted while its list arrives",
			answer: endlessStreams,
		},
	}
}

// onWatches answers watches, after honest lists.
func onWatches(do func(s *Server, a *answer, r *request)) func(*Server, http.ResponseWriter, *request) bool {
	return func(s *Server, w http.ResponseWriter, r *request) bool {
		if refusesStreams(w, r) {
			return true
		}
		if r.verb != verbWatch {
			return false
		}
		do(s, s.begin(w, r), r)
		return true
	}
}

func endlessEvents(s *Server, a *answer, r *request) {
	for a.text(`{"type":"ADDED","object":%s}`+"\n", s.item(r, "event-"+string(formatName(s.count("event"))), 2)) {
	}
}

// formatName is a short name for a number.
func formatName(n int) []byte {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	var name []byte
	for ; n > 0; n /= len(letters) {
		name = append(name, letters[n%len(letters)])
	}
	return append(name, 'a')
}

func repeatedEvents(s *Server, a *answer, r *request) {
	for version := 2; ; version++ {
		added := `{"type":"ADDED","object":` + s.item(r, "repeated", version) + "}\n"
		gone := `{"type":"DELETED","object":` + s.item(r, "repeated", version) + "}\n"
		if !a.times(1000, added) || !a.times(1000, gone) || !a.sent() || !a.wait(s.options.Drip) {
			return
		}
	}
}

func foreignEvents(s *Server, a *answer, r *request) {
	for a.text(`{"type":"ADDED","object":{"apiVersion":"v1","kind":"Secret","metadata":{"name":"stolen","namespace":"kube-system"}}}`+"\n") &&
		a.text(`{"type":"DELETED","object":{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"default"}}}`+"\n") &&
		a.text(`{"type":"MODIFIED","object":{"apiVersion":"x/v1","kind":"X","metadata":{"name":"../x","namespace":"a/b"}}}`+"\n") &&
		a.text(`{"type":"MODIFIED","object":%s}`+"\n", s.item(r, "", 1)) &&
		a.text(`{"type":"INVENTED","object":%s}`+"\n", s.item(r, "invented", 1)) && a.sent() && a.wait(s.options.Drip) { //nolint:revive // The condition does the work.
	}
}

func malformedEvents(s *Server, a *answer, r *request) {
	values := malformed()
	n := s.count("malformed")
	value := values[n/3%len(values)]
	switch n % 3 {
	case 0:
		a.text(`{"type":%s,"object":%s}`+"\n", value, s.item(r, "m", 2))
	case 1:
		a.text(`{"type":"ADDED","object":%s}`+"\n", value)
	default:
		a.text(`{"type":"MODIFIED","object":{"metadata":{"name":"m","namespace":"default","resourceVersion":"2","labels":%s,"finalizers":%s}}}`+"\n", value, value)
	}
	a.sent()
}

func silentStreams(s *Server, w http.ResponseWriter, r *request) bool {
	if r.verb != verbWatch || !r.initialEvents {
		return false
	}
	s.begin(w, r).hang()
	return true
}

func endlessStreams(s *Server, w http.ResponseWriter, r *request) bool {
	if r.verb != verbWatch || !r.initialEvents {
		return false
	}
	endlessEvents(s, s.begin(w, r), r)
	return true
}
