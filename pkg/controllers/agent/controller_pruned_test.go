// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
)

func TestConditionsThatADefinitionDropsAreNotRepeated(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.WaitForServed()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: f.ClaimCRD().Name}}
	f.Edit(f.Hub, crd, func() {
		status := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
		delete(status.Properties, "conditions")
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"] = status
	})
	f.Within("the definition follows", func() error {
		if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		if _, there := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties["conditions"]; there {
			return errors.New("it knows conditions")
		}
		return nil
	})

	holder := f.NewClaim(f.Target, "db")
	holder.SetAnnotations(ownership.Source{Identifier: "another", Namespace: "theirs"}.Annotations())
	f.Create(f.Hub, holder)
	f.CreateClaim("db")
	f.Within("the conflict is annotated", func() error {
		u, err := f.GetClaim(f.Workload, f.Namespace, "db")
		if err == nil && u.GetAnnotations()[fleetv1alpha1.ConflictAnnotation] == "" {
			err = fmt.Errorf("the annotations are %v", u.GetAnnotations())
		}
		return err
	})
	reasons := func() []string {
		l := &eventsv1.EventList{}
		if err := f.Workload.List(f.Ctx, l, client.InNamespace(f.Namespace)); err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, e := range l.Items {
			if e.Series != nil {
				t.Errorf("want %s to be reported once, got %d", e.Reason, e.Series.Count)
			}
			out = append(out, e.Reason)
		}
		slices.Sort(out)
		return out
	}
	f.Within("the conflict is an event", func() error {
		if !slices.Contains(reasons(), fleetv1alpha1.ReasonConflict) {
			return errors.New("there is none")
		}
		return nil
	})
	f.WaitForIdle()

	w, ok := f.agent.workloads.Get(f.Cluster)
	if !ok {
		t.Fatal("the cluster is not engaged")
	}
	before := len(f.WorkloadRequests.Writes())
	for range 3 {
		f.agent.enqueueClaims(w)
		f.WaitForIdle()
	}
	if got := f.WorkloadRequests.Writes()[before:]; len(got) != 0 {
		t.Errorf("want nothing to be written again, got:\n%s", strings.Join(got, "\n"))
	}

	if err := f.Hub.Delete(f.Ctx, holder); err != nil {
		t.Fatal(err)
	}
	f.Within("the end of the conflict is an event", func() error {
		if !slices.Equal(reasons(), []string{fleetv1alpha1.ReasonConflict, fleetv1alpha1.ReasonSynced}) {
			return fmt.Errorf("the events are %v", reasons())
		}
		return nil
	})
	f.MarkReady("db", "db.example.org")
	f.Within("the status comes back", func() error {
		u, err := f.GetClaim(f.Workload, f.Namespace, "db")
		if status, _ := u.Object["status"].(map[string]any); err == nil && status["address"] != "db.example.org" {
			err = fmt.Errorf("it is %v", status)
		}
		return err
	})
}
