// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"net/http"

	"k8s.io/apimachinery/pkg/util/uuid"
)

func identityAttacks() []Attack {
	return []Attack{
		{
			Name:     "changing-identity",
			Harm:     "Says that it is another cluster in each response, so that it is taken for others one after another",
			Guard:    "A cluster that is not the one it was is disconnected and refused",
			Connects: true,
			answer:   changingIdentity,
		},
		{
			Name:   "enormous-identity",
			Harm:   "Says that its UID is 256 MiB of text",
			Guard:  "Answers to probes are read up to 64 KiB, and a UID is checked",
			answer: enormousIdentity,
		},
		{
			Name:     "endless-probes",
			Harm:     "Answers to probes with text without end",
			Guard:    "Answers to probes are read up to 64 KiB",
			Connects: true,
			answer:   endlessProbes,
		},
	}
}

// changingIdentity closes the connection on every third health probe, so that its identity is requested now and then.
func changingIdentity(s *Server, w http.ResponseWriter, r *request) bool {
	switch {
	case r.URL.Path == "/readyz" && s.count("readyz")%3 == 0:
		panic(http.ErrAbortHandler)
	case r.asksIdentity():
		answerJSON(w, http.StatusOK, map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": r.name, "uid": string(uuid.NewUUID())},
		})
		return true
	}
	return false
}

func enormousIdentity(s *Server, w http.ResponseWriter, r *request) bool {
	if !r.asksIdentity() {
		return false
	}
	a := s.begin(w, r)
	a.text(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"`)
	a.endless("0")
	return true
}

func endlessProbes(s *Server, w http.ResponseWriter, r *request) bool {
	if r.URL.Path != "/readyz" && r.URL.Path != "/version" {
		return false
	}
	a := s.begin(w, r)
	a.text(`{"gitVersion":"`)
	a.endless("v1")
	return true
}
