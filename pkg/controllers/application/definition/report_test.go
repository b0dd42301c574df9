// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/events"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// oneCluster is a fleet of the cluster w1.
type oneCluster struct{}

func (oneCluster) Lookup(name mcr.ClusterName) (connection.Cluster, bool) {
	return connection.Cluster{Name: name}, name == "w1"
}
func (oneCluster) List() []connection.Cluster         { return nil }
func (oneCluster) InClass(string) []mcr.ClusterName   { return nil }
func (oneCluster) Subscribe(func(mcr.ClusterName))    {}
func (oneCluster) OnOffboard(connection.OffboardFunc) {}

// heard is a Reporter that records what it receives.
type heard []string

func (h *heard) DefinitionServed(c mcr.ClusterName, _ string) { *h = append(*h, "served "+string(c)) }
func (h *heard) DefinitionRefused(c mcr.ClusterName, _, reason, _ string) {
	*h = append(*h, "refused "+string(c)+" "+reason)
}
func (h *heard) DefinitionForgotten(c mcr.ClusterName, _ string) {
	*h = append(*h, "forgotten "+string(c))
}

// TestDefinitionReports checks that everything is forwarded, and that an event is written only when something changed.
func TestDefinitionReports(t *testing.T) {
	recorder := events.NewFakeRecorder(16)
	forwarded := &heard{}
	d := NewReports(forwarded, recorder, oneCluster{})
	notice := &condition.Error{Reason: fleetv1alpha1.ReasonDefinitionNewer, Message: "It is newer."}

	d.Served("w1", nil)
	d.DefinitionRefused("w1", Name, fleetv1alpha1.ReasonDefinitionForeign, "Another client manages it.")
	d.DefinitionRefused("w1", Name, fleetv1alpha1.ReasonDefinitionForeign, "Another client manages it.")
	d.Served("w1", notice)
	d.Served("w1", notice)
	d.Served("w1", nil)
	d.DefinitionRefused("w1", Name, fleetv1alpha1.ReasonDefinitionForeign, "Another client manages it.")
	d.DefinitionForgotten("w1", Name)
	d.DefinitionRefused("gone", Name, fleetv1alpha1.ReasonDefinitionForeign, "Another client manages it.")

	want := heard{
		"served w1", "refused w1 ForeignDefinition", "refused w1 ForeignDefinition", "served w1", "served w1", "served w1",
		"refused w1 ForeignDefinition", "forgotten w1", "refused gone ForeignDefinition",
	}
	if diff := cmp.Diff(want, *forwarded); diff != "" {
		t.Errorf("-want, +forwarded:\n%s", diff)
	}
	close(recorder.Events)
	var got []string
	for e := range recorder.Events {
		got = append(got, e)
	}
	wantEvents := []string{
		"Warning ForeignDefinition Another client manages it.", "Normal DefinitionNewer It is newer.", "Warning ForeignDefinition Another client manages it.",
	}
	if diff := cmp.Diff(wantEvents, got); diff != "" {
		t.Errorf("-want, +events:\n%s", diff)
	}
}
