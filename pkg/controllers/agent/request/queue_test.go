// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// TestOrder checks the order of a cluster's requests, queued before and after the controller has started, against the
// agent's queue.
func TestOrder(t *testing.T) {
	t.Parallel()
	claim := func(name string) Request {
		return Request{ClusterName: "w1", NamespacedName: types.NamespacedName{Namespace: "foo", Name: name}}
	}
	fair := multicluster.NewFairQueue("test", multicluster.FairQueueOptions[Request]{Workers: 1})
	t.Cleanup(fair.ShutDown)
	var q Queue[Request]
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
