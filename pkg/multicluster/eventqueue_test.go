// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// TestEventQueueOrder checks the order of a cluster's requests, queued before and after the controller has started,
// against the fair queue.
func TestEventQueueOrder(t *testing.T) {
	t.Parallel()
	claim := func(name string) ObjectRequest {
		return ObjectRequest{ClusterName: "w1", NamespacedName: types.NamespacedName{Namespace: "foo", Name: name}}
	}
	fair := NewFairQueue("test", FairQueueOptions[ObjectRequest]{Workers: 1})
	t.Cleanup(fair.ShutDown)
	var q EventQueue[ObjectRequest]
	q.AddInitial(claim("before the start"))
	if err := q.Start(t.Context(), fair); err != nil {
		t.Fatal(err)
	}
	q.AddInitial(claim("listed"))
	q.Add(claim("created"))
	q.AddAhead(claim("changed in the hub"))
	var got []string
	for fair.Len() > 0 {
		r, _ := fair.Get()
		got = append(got, r.Name)
		fair.Done(r)
	}
	if diff := cmp.Diff([]string{"changed in the hub", "before the start", "created", "listed"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
