// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package propagation

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
	"github.com/masthead-dev/masthead/pkg/crossplane"
)

// benchmarkClaim is a claim of an ordinary size, with a status.
func benchmarkClaim(b *testing.B) *unstructured.Unstructured {
	b.Helper()
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(`{"apiVersion":"database.acmeco.org/v1alpha1","kind":"MySQLInstanceRequirement",
		"metadata":{"name":"db","namespace":"foo","uid":"1","generation":2,"resourceVersion":"7","labels":{"app.kubernetes.io/name":"shop","team":"a"},
			"annotations":{"example.org/owner":"team-a"},"finalizers":["agent.masthead.dev/requirement"]},
		"spec":{"version":"8","storageGB":20,"parameters":{"size":"small","region":"eu-1","backup":"daily"},
			"compositionSelector":{"matchLabels":{"provider":"example"}},"writeConnectionSecretToRef":{"name":"db"}},
		"status":{"address":"10.0.0.1:3306","conditions":[
			{"type":"Synced","status":"True","reason":"ReconcileSuccess","lastTransitionTime":"2026-01-01T00:00:00Z","observedGeneration":2},
			{"type":"Ready","status":"True","reason":"Available","lastTransitionTime":"2026-01-01T00:00:00Z","observedGeneration":2}]}}`), u); err != nil {
		b.Fatal(err)
	}
	return u
}

// BenchmarkPush measures the check whether a claim has to be pushed.
func BenchmarkPush(b *testing.B) {
	claim, us := benchmarkClaim(b), ownership.Source{Identifier: "w1", Namespace: "foo"}
	hub := buildIntent(claim, ownershiptest.InBar("db"), us, crossplane.FormClaim)
	b.ReportAllocs()
	for b.Loop() {
		if !Applied(buildIntent(claim, ownershiptest.InBar("db"), us, crossplane.FormClaim), hub, crossplane.FormClaim) {
			b.Fatal("it is there already")
		}
	}
}

// BenchmarkStatus measures propagating the status, without the request.
func BenchmarkStatus(b *testing.B) {
	hub := benchmarkClaim(b)
	claim := hub.DeepCopy()
	delete(claim.Object, "status")
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	b.ReportAllocs()
	for b.Loop() {
		c := Condition(claim, nil)
		status := BuildStatus(claim, hub, true, c, now)
		if c.Status != metav1.ConditionTrue || !StatusDiffers(claim, status) {
			b.Fatal("the claim does not show it yet")
		}
		if _, err := StatusPatch(claim, status); err != nil {
			b.Fatal(err)
		}
	}
}
