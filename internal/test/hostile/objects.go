// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

func objectAttacks() []Attack {
	const size = "Limits of the bytes of an answer and of what is kept of a kind"
	return []Attack{
		{
			Name: "enormous-string", Connects: true,
			Harm:  "Lists one object with a text of 48 MiB",
			Guard: size,
			answer: onLists(func(s *Server, a *answer, r *request) {
				a.text("%s%s", s.listHead(r), strings.TrimSuffix(s.itemWith(r, "string", 1, "", `,"spec":{"text":"`), "}"))
				a.times(48<<20, "x")
				a.text(`"}}]}`)
			}),
		},
		{
			Name: "enormous-keys", Connects: true,
			Harm:  "Lists one object with half a million fields, each of which takes an entry of a map",
			Guard: "Limit of the tokens of an answer, before it is decoded",
			answer: onLists(func(s *Server, a *answer, r *request) {
				a.text("%s%s", s.listHead(r), strings.TrimSuffix(s.itemWith(r, "keys", 1, "", `,"spec":{"k":0`), "}"))
				keys(a, `,"%d":0`)
				a.text(`}}]}`)
			}),
		},
		{
			Name: "enormous-annotations", Connects: true,
			Harm:  "Lists one object with half a million annotations and labels, which are kept even where only metadata is",
			Guard: "Limit of the tokens of an answer, before it is decoded",
			answer: onLists(func(s *Server, a *answer, r *request) {
				head, _, _ := strings.Cut(s.item(r, "annotated", 1), `,"uid"`)
				a.text("%s%s", s.listHead(r), head+`,"annotations":{"k":"v"`)
				keys(a, `,"a-%d":""`)
				a.text(`},"labels":{"k":"v"`)
				keys(a, `,"l-%d":""`)
				a.text(`}}}]}`)
			}),
		},
		{
			Name: "enormous-managed-fields", Connects: true,
			Harm:  "Lists one object with half a million entries of managedFields, each with fields",
			Guard: "Limit of the tokens of an answer, before it is decoded",
			answer: onLists(func(s *Server, a *answer, r *request) {
				head, _, _ := strings.Cut(s.item(r, "managed", 1), `,"uid"`)
				a.text("%s%s", s.listHead(r), head+`,"managedFields":[{}`)
				keys(a, `,{"manager":"m-%d","operation":"Apply","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:x":{}}}}`)
				a.text(`]}}]}`)
			}),
		},
		{
			Name: "malformed", Connects: true,
			Harm:   "Sends objects whose fields have the wrong types, to find a decoder or a controller that panics",
			Guard:  "What cannot be decoded is an error of its cluster; a panic costs the cluster its connection, not the process",
			answer: onLists(malformedList),
		},
		{
			Name: "garbled", Connects: true,
			Harm:   "Sends honest lists with bytes changed at random, to find a decoder or a controller that panics",
			Guard:  "What cannot be decoded is an error of its cluster; a panic costs the cluster its connection, not the process",
			answer: onLists(garbledList),
		},
	}
}

// keys sends half a million pieces of text, each with a number.
func keys(a *answer, format string) {
	var b strings.Builder
	for i := range 500_000 {
		fmt.Fprintf(&b, format, i)
		if b.Len() >= chunk {
			if !a.text("%s", b.String()) {
				return
			}
			b.Reset()
		}
	}
	a.text("%s", b.String())
}

// malformed are values for places where another type is expected.
func malformed() []string {
	return []string{
		`null`, `0`, `-1`, `1e999`, `9223372036854775808`, `1.5`, `""`, `"x"`, `true`, `[]`, `[null]`, `[[[]]]`, `{}`, `{"":null}`, `{"a":[{}]}`,
		`"\ud800"`, `"\u0000"`, `"2026-99-99T99:99:99Z"`, `{"kind":{}}`,
	}
}

// malformedList sends the malformed values in turn, each in one of the places that clients read.
func malformedList(s *Server, a *answer, r *request) {
	apiVersion, kind := s.requestType(r)
	values := malformed()
	n := s.count("list")
	value := values[n%len(values)]
	places := []string{
		`"metadata":%s`, `"metadata":{"name":%s}`, `"metadata":{"name":"m","namespace":%s}`, `"metadata":{"name":"m","labels":%s}`,
		`"metadata":{"name":"m","annotations":%s}`, `"metadata":{"name":"m","finalizers":%s}`, `"metadata":{"name":"m","ownerReferences":%s}`,
		`"metadata":{"name":"m","managedFields":%s}`, `"metadata":{"name":"m","deletionTimestamp":%s}`, `"metadata":{"name":"m","generation":%s}`,
		`"metadata":{"name":"m","resourceVersion":%s}`, `"metadata":{"name":"m","uid":%s}`, `"metadata":{"name":"m"},"spec":%s`,
		`"metadata":{"name":"m"},"spec":{"writeConnectionSecretToRef":%s,"resourceRef":%[1]s,"names":%[1]s,"versions":%[1]s,"selector":%[1]s}`,
		`"metadata":{"name":"m"},"status":%s`, `"metadata":{"name":"m"},"status":{"conditions":%s}`, `"metadata":{"name":"m"},"status":{"conditions":[%s]}`,
		`"metadata":{"name":"m"},"data":%s`, `"metadata":{"name":"m"},"type":%s`, `"items":%s`,
	}
	switch n % 4 {
	case 0: // One malformed object beside a good one.
		place := places[n/4%len(places)]
		a.text("%s%s,{\"apiVersion\":\"%s\",\"kind\":\"%s\",%s}]}", s.listHead(r), s.item(r, "good", 1), apiVersion, kind, fmt.Sprintf(place, value))
	case 1: // All of them.
		a.text("%s%s", s.listHead(r), s.item(r, "good", 1))
		for i, place := range places {
			a.text(`,{"apiVersion":"%s","kind":"%s",%s}`, apiVersion, kind, fmt.Sprintf(place, values[(n+i)%len(values)]))
		}
		a.text("]}")
	case 2: // Items that are not objects.
		a.text("%s%s]}", s.listHead(r), value)
	default: // Not a valid list.
		a.text(`{"kind":%s,"apiVersion":"%s","metadata":%s,"items":%s}`, value, apiVersion, value, value)
	}
}

// garbledList changes a few bytes of an honest list.
func garbledList(s *Server, a *answer, r *request) {
	n := s.count("list")
	random := rand.New(rand.NewPCG(uint64(n), 1)) // The same bytes are needed each time.
	text := []byte(s.listHead(r) + s.itemWith(r, "garbled", n, `,"labels":{"a":"b"},"finalizers":["x/y"]`, `,"spec":{"a":[1,2.5,"x",null,true]}`) + "]}")
	for range 1 + random.IntN(4) {
		text[random.IntN(len(text))] = byte(random.IntN(256))
	}
	a.write(text)
}
