// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/discoverytest"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

func TestWhyNotServed(t *testing.T) {
	status := func(conditionType, status, message string) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{"type": conditionType, "status": status, "message": message}}}
	}
	cases := map[string]struct {
		reason string
		status any
		want   string
	}{
		"Conflict": {
			"Names that belong to another definition are why.", status("NamesAccepted", "False", `"Composition" is already in use`),
			`NamesAccepted is False: "Composition" is already in use`,
		},
		"Installing": {"A definition that takes long is reported.", status("Established", "False", "the initial names have been accepted"), "Established is False: the initial names have been accepted"},
		"Lags":       {"An API server that lags does not say so.", status("Established", "True", "the initial names have been accepted"), "its status does not say why."},
		"Lies":       {"What has another shape says nothing.", []any{"x"}, "its status does not say why."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := whyNotServed(&unstructured.Unstructured{Object: map[string]any{"status": tc.status}}); got != tc.want {
				t.Errorf("%s Want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
	long := whyNotServed(&unstructured.Unstructured{Object: map[string]any{"status": status("NamesAccepted", "False", strings.Repeat("\x1b", 1<<20))}})
	if len(long) > multicluster.MaxForeignText+len("...") || strings.Contains(long, "\x1b") {
		t.Errorf("want what a cluster says bounded and without control characters, got %d bytes", len(long))
	}
}

// TestDefinitionThatIsNeverServedIsReported has another definition with the names of one that Masthead installs.
func TestDefinitionThatIsNeverServedIsReported(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	clock := clocktesting.NewFakePassiveClock(time.Now())
	f.clock = clock
	taken := f.NewClaimCRD("others", nil)
	taken.Name, taken.Spec.Group, taken.Spec.Names.Kind, taken.Spec.Scope = "others."+crossplaneGroup, crossplaneGroup, "Composition", apiextensionsv1.ClusterScoped
	f.Create(f.Workload, taken)
	t.Cleanup(func() { f.Delete(f.Workload, taken) })
	f.Within("it has the names", func() error {
		crd, err := f.GetCRD(f.Workload, taken.Name)
		if err == nil && (len(crd.Status.Conditions) == 0 || crd.Status.Conditions[0].Status != apiextensionsv1.ConditionTrue) {
			err = errors.New("it has not")
		}
		return err
	})
	f.start()
	xrd, composition := f.CreateXRD("mysqlinstances"), f.CreateComposition("aws", "mysqlinstances")
	f.WaitForCopy(xrd, nil)
	f.Within("it is waited for", func() error {
		w, _ := f.reconciler.workloads.Get(f.Cluster)
		for _, kind := range w.followedKinds() {
			if kind.Resource == resourceComposition && !w.awaited.Is(kind, time.Time{}) {
				return nil
			}
		}
		return errors.New("it is not")
	})
	if got := f.reports.get(discoverytest.CompositionCRD); got != "" {
		t.Errorf("want nothing reported at once, got %q", got)
	}
	clock.SetTime(clock.Now().Add(servedTimeout))
	f.reconciler.enqueueAll()
	f.reported(discoverytest.CompositionCRD, fleetv1alpha1.ReasonDefinitionNotServed)
	f.WaitForEvent(fleetv1alpha1.ReasonDefinitionNotServed)

	t.Log("when the names are free, it is served")
	f.Delete(f.Workload, taken)
	f.reported(discoverytest.CompositionCRD, "Served")
	// The former client still resolves Composition to the kind of the other definition.
	f.Workload = controllertest.NewClient(t, f.lane.workload, controllertest.Scheme())
	f.WaitForCopy(composition, nil)
}
