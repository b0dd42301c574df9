// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// silent are Metrics that record nothing.
type silent struct{}

func (silent) Definition(mcr.ClusterName, string, bool) {}
func (silent) ForgetDefinition(mcr.ClusterName, string) {}
func (silent) ForgetCluster(mcr.ClusterName)            {}

func requestFor(crd string) mcreconcile.Request {
	req := mcreconcile.Request{ClusterName: "w1"}
	req.NamespacedName = types.NamespacedName{Name: crd}
	return req
}

func TestContentOfDefinitionsThatTheHubWithdrewIsForgotten(t *testing.T) {
	r := New(Options{Metrics: silent{}})
	r.wanted["withdrawn"], r.wanted["not-for-this-cluster"] = wantedDefinition{}, wantedDefinition{}
	w := index.NewCluster(index.Connection{Name: "w1"})
	r.forget(w, requestFor("withdrawn"), looked{})
	r.forget(w, requestFor("not-for-this-cluster"), looked{publication: crossplane.Publication{Form: crossplane.FormClaim}})
	if diff := cmp.Diff([]string{"not-for-this-cluster"}, slices.Collect(maps.Keys(r.wanted))); diff != "" {
		t.Errorf("want what the hub publishes and nothing else (-want +got):\n%s", diff)
	}
}

func TestReporterHearsWhyADefinitionIsRefusedNow(t *testing.T) {
	var messages []string
	reporter := func(_ mcr.ClusterName, _ string, _ bool, problem *condition.Error) {
		messages = append(messages, problem.Message)
	}
	recorder := events.NewFakeRecorder(10)
	r := New(Options{Reporter: reporter, Recorder: recorder, Metrics: silent{}})
	for _, message := range []string{"It is that of A.", "It is that of B."} {
		r.report(t.Context(), connection.Cluster{}, requestFor("a"), &condition.Error{Reason: "Foreign", Message: message})
	}
	if diff := cmp.Diff([]string{"It is that of A.", "It is that of B."}, messages); diff != "" {
		t.Errorf("want each message (-want +got):\n%s", diff)
	}
	if len(recorder.Events) != 1 {
		t.Errorf("want one event, as the text may be the cluster's, got %d", len(recorder.Events))
	}
}
