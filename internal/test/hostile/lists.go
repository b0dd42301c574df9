// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/uuid"
)

func listAttacks() []Attack {
	const elements = "Limit of the elements of an answer, before it is decoded"
	return []Attack{
		{
			Name: "endless-list", Connects: true,
			Harm:   "Sends lists of {},{},… without end: each element takes three bytes on the wire and three hundred when it is decoded",
			Guard:  elements,
			answer: onLists(func(s *Server, a *answer, r *request) { a.text("%s{}", s.listHead(r)); a.endless(",{}") }),
		},
		{
			Name: "empty-elements", Connects: true,
			Harm:  "Sends complete lists of five million empty elements, which stay below a limit of bytes",
			Guard: elements,
			answer: onLists(func(s *Server, a *answer, r *request) {
				a.text("%s{}", s.listHead(r))
				a.times(5_000_000, ",{}")
				a.text("]}")
			}),
		},
		{
			Name: "endless-array", Connects: true,
			Harm:  "Sends an object with an array of zeros without end, each of which takes ten times as much when it is decoded",
			Guard: elements,
			answer: onLists(func(s *Server, a *answer, r *request) {
				a.text("%s%s", s.listHead(r), strings.TrimSuffix(s.itemWith(r, "array", 1, "", `,"spec":{"zeros":[0`), "}"))
				a.endless(",0")
			}),
		},
		{
			Name: "endless-pages", Connects: true,
			Harm:  "Says after each page of a list that there is another, so that a list never ends and what is kept of it grows",
			Guard: "Budgets of a kind, counted while its list arrives",
			answer: onLists(func(s *Server, a *answer, r *request) {
				s.page(a, r, strconv.Itoa(r.from+1), s.item(r, fmt.Sprintf("page-%d", r.from), 1))
			}),
		},
		{
			Name: "empty-pages", Connects: true,
			Harm:   "Says after each page that there is another, and brings nothing, so that no budget is ever reached",
			Guard:  "A page counts as an object",
			answer: onLists(func(s *Server, a *answer, r *request) { s.page(a, r, strconv.Itoa(r.from+1), "") }),
		},
		{
			Name: "same-page", Connects: true,
			Harm:   "Says after each page that the same page comes next, so that a list never ends while what is kept does not grow",
			Guard:  "A page counts as an object",
			answer: onLists(func(s *Server, a *answer, r *request) { s.page(a, r, "1", s.item(r, "same", 1)) }),
		},
		{
			Name: "deep-nesting", Connects: true,
			Harm:  "Nests objects millions deep, so that a recursive decoder runs out of stack",
			Guard: "Limit of the depth of an answer, before it is decoded",
			answer: onLists(func(s *Server, a *answer, r *request) {
				a.text(`%s{"spec":`, s.listHead(r))
				a.endless(`{"a":`)
			}),
		},
		{
			Name: "deep-arrays", Connects: true,
			Harm:  "Nests arrays millions deep, which takes one byte each",
			Guard: "Limit of the depth of an answer, before it is decoded",
			answer: onLists(func(s *Server, a *answer, r *request) {
				a.text(`%s{"spec":`, s.listHead(r))
				a.endless("[")
			}),
		},
		{
			Name: "changing-objects", Connects: true,
			Harm: "Lists a thousand objects with other names and UIDs each time and ends each watch, so that everything is always" +
				" deleted and added",
			Guard:  "Back-off between lists, and fair queues between clusters",
			answer: changingObjects,
		},
		{
			Name: "backward-versions", Connects: true,
			Harm:   "Has resource versions that go backwards from list to list and from event to event",
			Guard:  "A version is only compared with what the same cluster said before, and what is older is not taken for newer",
			answer: backwardVersions,
		},
		{
			Name: "foreign-items", Connects: true,
			Harm:   "Lists objects of other kinds, groups, namespaces and without names, to have them acted on as what they are not",
			Guard:  "An object is of the kind that was requested, with a name and a namespace, or is dropped",
			answer: onLists(foreignItems),
		},
		{
			Name: "protobuf-elements", Connects: true,
			Harm:   "Answers lists in protobuf that was not requested, with empty elements of two bytes each",
			Guard:  "Protobuf is refused, or limited like JSON",
			answer: protobufElements,
		},
		{
			Name: "protobuf-garbage", Connects: true,
			Harm:   "Answers in protobuf with lengths of gigabytes and garbage, to have memory reserved or a decoder fail badly",
			Guard:  "Protobuf is refused, or limited like JSON",
			answer: protobufGarbage,
		},
	}
}

// page is a page of a list that is followed by another page.
func (s *Server) page(a *answer, r *request, next, items string) {
	head := strings.Replace(s.listHead(r), `"resourceVersion":"1"`, `"resourceVersion":"1","continue":"`+next+`"`, 1)
	a.text("%s%s]}", head, items)
}

func changingObjects(s *Server, w http.ResponseWriter, r *request) bool {
	if r.verb == verbWatch && !r.initialEvents {
		s.begin(w, r).sent() // It ends at once.
		return true
	}
	return onLists(func(s *Server, a *answer, r *request) {
		n := s.count("list")
		a.text("%s%s", s.listHead(r), s.item(r, "first", n))
		for i := range 1000 {
			if !a.text(",%s", s.item(r, fmt.Sprintf("o-%d-%s", i, uuid.NewUUID()), n)) {
				return
			}
		}
		a.text("]}")
	})(s, w, r)
}

func backwardVersions(s *Server, w http.ResponseWriter, r *request) bool {
	const highest = 1_000_000
	if r.verb == verbWatch && !r.initialEvents {
		a := s.begin(w, r)
		for range 100 {
			if !a.text(`{"type":"MODIFIED","object":%s}`+"\n", s.item(r, "backward", highest-s.count("version"))) {
				break
			}
		}
		a.wait(s.options.Drip)
		return true
	}
	return onLists(func(s *Server, a *answer, r *request) {
		version := highest - s.count("version")
		head := strings.Replace(s.listHead(r), `"resourceVersion":"1"`, fmt.Sprintf(`"resourceVersion":"%d"`, version), 1)
		a.text("%s%s]}", head, s.item(r, "backward", version))
	})(s, w, r)
}

func foreignItems(s *Server, a *answer, r *request) {
	a.text("%s%s", s.listHead(r), strings.Join([]string{
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"stolen","namespace":"kube-system"},"data":{"token":"eA=="}}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"cluster-admin"}}`,
		`{"apiVersion":"v1","kind":"List","items":[{},{}]}`,
		`{"metadata":{"name":"../../escape","namespace":"../kube-system"}}`,
		`{"metadata":{"name":"","namespace":"default"}}`,
		`{"metadata":{"name":"a/b","namespace":"default"}}`,
		`{"metadata":{"name":"status","namespace":"default","deletionTimestamp":"2026-01-01T00:00:00Z"},"kind":"Status"}`,
		`{"metadata":{"name":"` + strings.Repeat("n", 1<<20) + `"}}`,
	}, ","))
	a.text("]}")
}

// Kubernetes sends protobuf with a fixed head, wrapped in runtime.Unknown: field 2 of that is the object.
const protobufType = "application/vnd.kubernetes.protobuf"

func protobufHead(length uint64) []byte {
	out := []byte("k8s\x00\x12")
	for ; length >= 0x80; length >>= 7 {
		out = append(out, byte(length)|0x80)
	}
	return append(out, byte(length))
}

func protobufElements(s *Server, w http.ResponseWriter, r *request) bool {
	if r.verb != verbList {
		return refusesStreams(w, r)
	}
	const elements = 10_000_000
	a := s.beginAnswer(w, r, protobufType)
	a.write(protobufHead(2 * elements))
	a.times(elements, "\x12\x00") // Field 2 of every list contains its items.
	return true
}

func protobufGarbage(s *Server, w http.ResponseWriter, r *request) bool {
	if r.isProbe() || r.isLookup {
		return false
	}
	a := s.beginAnswer(w, r, protobufType)
	a.write(protobufHead(1 << 40))
	a.text("\x12\xff\xff\xff\xff\x07") // An item of two gigabytes.
	a.times(1<<20, "\xff")
	return true
}
