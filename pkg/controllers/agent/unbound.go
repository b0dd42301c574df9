// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Crossplane loses the composite resource of a claim that is deleted while it is being created: it looks for the composite in
// its cache, which does not show it yet, takes it for never created, and lets the claim go (the reconciler of claims in
// Crossplane v2, internal/controller/apiextensions/claim: meta.WasCreated). What was provisioned then runs on for nobody.
//
// So a claim that Crossplane is just working on for the first time is not deleted in the hub before Crossplane has said
// something about it. That is a matter of a moment; a claim of which nobody says anything is not kept for long.

// unboundPatience is how old an object of the hub is at most when Crossplane is taken to work on it for the first time.
const unboundPatience = 10 * time.Second

// awaitsBinding is how long the deletion of an object of the hub has to wait, so that Crossplane knows the composite resource that it
// has named in the object.
func awaitsBinding(hub *unstructured.Unstructured, now time.Time, patience time.Duration) time.Duration {
	named, _, _ := unstructured.NestedString(hub.Object, "spec", "resourceRef", "name")
	conditions, _, _ := unstructured.NestedSlice(hub.Object, "status", "conditions")
	if named == "" || len(conditions) > 0 {
		return 0
	}
	left := hub.GetCreationTimestamp().Add(patience).Sub(now)
	return min(max(left, 0), patience)
}
