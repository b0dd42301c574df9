// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"

	"k8s.io/client-go/tools/events"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// lastReport keeps what a Reporter received last.
type lastReport string

func (l *lastReport) report(_ mcr.ClusterName, crd string, wanted bool, p *condition.Error) {
	switch {
	case !wanted:
		*l = lastReport("forgotten " + crd)
	case p != nil:
		*l = lastReport("refused " + crd + " " + p.Reason)
	default:
		*l = lastReport("served " + crd)
	}
}

func TestReports(t *testing.T) {
	var reported lastReport
	recorder := events.NewFakeRecorder(1)
	r := NewReports(reported.report, recorder)
	w1 := connection.Cluster{Name: "w1"}
	foreign := &condition.Error{Reason: fleetv1alpha1.ReasonDefinitionForeign, Message: "It is another client's."}
	newer := &condition.Error{Reason: fleetv1alpha1.ReasonDefinitionNewer, Message: "It is newer."}
	definition := func(served bool, p *condition.Error) func() {
		return func() { r.Definition(t.Context(), w1, "a", "Pull", served, p) }
	}
	of := func(name mcr.ClusterName, p *condition.Error) func() {
		return func() { r.Definition(t.Context(), connection.Cluster{Name: name}, "a", "Pull", false, p) }
	}
	cluster := func(p *condition.Error) func() { return func() { r.Cluster(t.Context(), w1, "Protect", p) } }
	const refused, warning = "refused a ForeignDefinition", "Warning ForeignDefinition It is another client's."

	for _, tc := range []struct {
		reason        string
		do            func()
		report, event string
	}{
		{"A definition in place is no event.", definition(true, nil), "served a", ""},
		{"A problem is one.", definition(false, foreign), refused, warning},
		{"The same reason is none.", definition(false, foreign), refused, ""},
		{"A served definition can have a notice.", definition(true, newer), "served a", "Normal DefinitionNewer It is newer."},
		{"The same notice is none.", definition(true, newer), "served a", ""},
		{"Its end is none.", definition(true, nil), "served a", ""},
		{"A problem that returns is one.", definition(false, foreign), refused, warning},
		{"An unwanted definition is none.", func() { r.Forget("w1", "a") }, "forgotten a", ""},
		{"A problem of a definition wanted again is one.", definition(false, foreign), refused, warning},
		{"A problem of a cluster is none of a definition.", cluster(foreign), "", warning},
		{"The same reason is none, of a cluster.", cluster(foreign), "", ""},
		{"Its end is none, of a cluster.", cluster(nil), "", ""},
		{"A problem that returns is one, of a cluster.", cluster(foreign), "", warning},
		{"An unwanted protection is none.", func() { r.Forget("w1", "") }, "", ""},
		{"A problem of one wanted again is one.", cluster(foreign), "", warning},
		{"A problem of another cluster is one.", of("w2", foreign), refused, warning},
		{"A cluster that is gone is not reported about.", func() { r.ForgetCluster("w1") }, "", ""},
		{"Another cluster's reason stays.", of("w2", foreign), refused, ""},
		{"A problem of its successor is one.", definition(false, foreign), refused, warning},
	} {
		reported = ""
		tc.do()
		event := ""
		select {
		case event = <-recorder.Events:
		default:
		}
		if string(reported) != tc.report || event != tc.event {
			t.Errorf("%s Want report %q and event %q, got %q and %q", tc.reason, tc.report, tc.event, reported, event)
		}
	}
}
