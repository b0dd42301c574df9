// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/discoverytest"
)

func TestNeverServed(t *testing.T) {
	status := func(conditions ...string) map[string]any {
		var list []any
		for i := 0; i < len(conditions); i += 2 {
			list = append(list, map[string]any{"type": conditions[i], "status": conditions[i+1]})
		}
		return map[string]any{"conditions": list}
	}
	cases := map[string]struct {
		reason string
		status any
		want   bool
	}{
		"Refused": {
			"What was never established, and has names that belong to another definition, has no objects.",
			status("NamesAccepted", "False", "Established", "False"), true,
		},
		"Established": {"It is served, by another API server than the one that was queried.", status("NamesAccepted", "True", "Established", "True"), false},
		"Installing":  {"API servers serve what has its names before it is established.", status("NamesAccepted", "True", "Established", "False"), false},
		"Conflict":    {"What was established stays so when its names do not.", status("NamesAccepted", "False", "Established", "True"), false},
		"New":         {"No word is no answer.", nil, false},
		"Half":        {"Half a word is none.", status("Established", "False"), false},
		"Lies":        {"What has another shape says nothing.", []any{"x"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := neverServed(&unstructured.Unstructured{Object: map[string]any{"status": tc.status}}); got != tc.want {
				t.Errorf("%s Want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

// theirs creates a Composition in the workload cluster that is not Masthead's.
func (f *fixture) theirs() *unstructured.Unstructured {
	f.T.Helper()
	u := discoverytest.NewObject(discoverytest.CompositionKind, "theirs."+f.Group)
	u.Object["spec"] = map[string]any{
		"compositeTypeRef": map[string]any{"apiVersion": "theirs.org/v1", "kind": "Theirs"}, "mode": "Pipeline",
		"pipeline": []any{map[string]any{"step": "compose", "functionRef": map[string]any{"name": "theirs"}}},
	}
	f.Create(f.Workload, u)
	f.T.Cleanup(func() { f.Delete(f.Workload, u) })
	return u
}

func (f *fixture) answering(answer func(*http.Request) *http.Response) {
	f.Traffic.SetAnswer(answer)
}

// TestDefinitionStaysWhileAnAPIServerDoesNotServeIt lists objects at one of several API servers, which has not yet
// observed the current state of the definition. Objects that are not copies would be deleted with the definition.
func TestDefinitionStaysWhileAnAPIServerDoesNotServeIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.WaitForCopy(f.CreateComposition("aws", "mysqlinstances"), nil)
	theirs := f.theirs()
	f.WaitForIdle()

	var listed atomic.Int32
	lists := func(req *http.Request) bool {
		return req.Method == http.MethodGet && strings.HasSuffix(req.URL.Path, "/compositions") && !strings.Contains(req.URL.RawQuery, "watch=true")
	}
	f.answering(func(req *http.Request) *http.Response {
		if !lists(req) {
			return nil
		}
		listed.Add(1)
		return controllertest.JSONAnswer(req, http.StatusNotFound, "404 page not found")
	})
	f.EditClass(func(agent *fleetv1alpha1.AgentSpec) { agent.Discovery = fleetv1alpha1.DiscoveryModeNone })
	f.Within("it is looked at again", func() error {
		if listed.Load() < 2 {
			return errors.New("it is not")
		}
		return nil
	})
	f.stays(theirs)

	t.Log("what was counted before counts")
	f.answering(func(req *http.Request) *http.Response {
		switch {
		case !lists(req):
			return nil
		case req.URL.Query().Get("continue") != "":
			return controllertest.JSONAnswer(req, http.StatusNotFound, "404 page not found")
		}
		return controllertest.JSONAnswer(req, http.StatusOK, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"continue":"more"},
			"items":[{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"theirs","uid":"1","resourceVersion":"1"}}]}`)
	})
	f.reported(discoverytest.CompositionCRD, fleetv1alpha1.ReasonForeignObjectsLeft)
	f.stays(theirs)

	t.Log("when it is served everywhere, there is an answer")
	f.answering(nil)
	f.Delete(f.Workload, theirs)
	f.reconciler.enqueueAll()
	f.Within("the definition goes", func() error {
		if _, err := f.GetCRD(f.Workload, discoverytest.CompositionCRD); err == nil {
			return errors.New("it does not")
		}
		return nil
	})
}

// stays checks that a foreign object still exists, and so does the definition of Compositions.
func (f *fixture) stays(theirs *unstructured.Unstructured) {
	f.T.Helper()
	if crd, err := f.GetCRD(f.Workload, discoverytest.CompositionCRD); err != nil || crd.DeletionTimestamp != nil {
		f.T.Fatalf("want the definition to stay, got %v (%v)", crd.ObjectMeta, err)
	}
	now := discoverytest.NewObject(theirs.GroupVersionKind(), theirs.GetName())
	if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(now), now); err != nil || now.GetUID() != theirs.GetUID() {
		f.T.Fatalf("want what is not a copy to stay, got %v (%v)", now.Object, err)
	}
}

func TestWhatALabelWithholdsIsNotCopied(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	shown, shownComposition := f.CreateXRD("shown"), f.CreateComposition("shown", "shown")
	other := f.CreateComposition("other", "shown")
	f.WaitForCopy(shown, nil)
	f.WaitForCopy(shownComposition, nil)
	f.WaitForCopy(other, nil)

	f.Edit(f.Hub, other, func() { other.SetLabels(map[string]string{fleetv1alpha1.PublishLabel: "False"}) })
	f.WaitForGone(other)
	f.Edit(f.Hub, shown, func() { shown.SetLabels(map[string]string{fleetv1alpha1.PublishLabel: "false"}) })
	f.WaitForGone(shown)
	f.WaitForGone(shownComposition)

	f.Edit(f.Hub, shown, func() { shown.SetLabels(map[string]string{fleetv1alpha1.PublishLabel: "true"}) })
	f.WaitForCopy(shown, nil)
	f.WaitForCopy(shownComposition, nil)
	f.WaitForGone(other)
}
