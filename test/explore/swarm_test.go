// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"errors"
	"net/http"
	"slices"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/masthead-dev/masthead/internal/test/fakefleet"
	"github.com/masthead-dev/masthead/pkg/controllers/agent"
	"github.com/masthead-dev/masthead/pkg/controllers/discovery"
	"github.com/masthead-dev/masthead/pkg/controllers/references"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/test/explore/apiserver"
)

// controllers are those that the processes of a walk run.
type controllers struct{ agent, discovery, references bool }

// swarms are the choices of controllers with which walks begin. Half of the walks are the agent's alone.
var swarms = [][]string{
	{}, {}, {}, {}, {},
	{"run discovery"}, {"run references"}, {"run discovery", "run references"},
	{"run discovery", "run no agent"}, {"run references", "run no agent"},
}

// draws returns the steps that choose the controllers and the world. Without any, the processes run the agent alone.
func (w *world) draws() []option {
	if w.started > 0 {
		return nil
	}
	return []option{
		{"run discovery", rare, func() { w.runs.discovery = true }},
		{"run references", rare, func() { w.runs.references = true }},
		{"run a small world", rare, func() {
			w.clusters = w.clusters[:1]
			w.clusters[0].teams = w.clusters[0].teams[:1]
		}},
		{"run no agent", rare, func() { w.runs.agent = false }},
	}
}

// begin starts the first process, in a world that has what its controllers need.
func (w *world) begin() {
	if w.started > 0 {
		return
	}
	w.fill(w.hub.Server)
	if w.runs.references {
		for _, c := range w.clusters {
			w.create(c.server, crds, subnetCRD(), nil)
			w.create(c.server, crds, grantCRD(), nil)
			w.settleServer(c.server)
		}
	}
	w.start(w.hub)
	synctest.Wait()
}

// setup adds the controllers to a process.
func (c controllers) setup(
	mgr mcmanager.Manager, fleet *fakefleet.Fleet, gate *multicluster.Gate, grace time.Duration, metrics prometheus.Registerer,
) error {
	var errs []error
	if c.agent {
		errs = append(errs, agent.Setup(mgr, agent.Options{
			Fleet: fleet, Gate: gate, SkipNameValidation: new(true), MaxConcurrentReconciles: 2, InFlightGrace: grace,
			Registerer: metrics,
		}))
	}
	if c.discovery {
		errs = append(errs, discovery.Setup(mgr, discovery.Options{Fleet: fleet, Gate: gate, SkipNameValidation: new(true), MaxConcurrentReconciles: 2}))
	}
	if c.references {
		errs = append(errs, references.Setup(mgr, references.Options{Fleet: fleet, Gate: gate, SkipNameValidation: new(true), MaxConcurrentReconciles: 2}))
	}
	return errors.Join(errs...)
}

// watched returns the resources that the controllers watch in each cluster once they are connected.
func (c controllers) watched() []schema.GroupResource {
	var out []schema.GroupResource
	if c.agent {
		out = append(out, claims)
	}
	if c.discovery {
		out = append(out, xrds)
	}
	if c.references {
		out = append(out, subnets)
	}
	return out
}

// weighted gives options a weight.
func weighted(weight int, options []option) []option {
	for i := range options {
		options[i].weight = weight
	}
	return options
}

// edit is a change of an object, as a step and as a patch to merge.
type edit struct {
	step  string
	patch map[string]any
}

// lifecycle returns the steps by which an object comes, changes and goes.
func (w *world) lifecycle(s *apiserver.Server, who string, resource schema.GroupResource, obj *unstructured.Unstructured, edits ...edit) []option {
	what := obj.GetKind() + " " + obj.GetName()
	p := path(resource, obj.GroupVersionKind().Version, obj.GetNamespace(), "")
	switch have := s.Get(key(resource, obj.GetNamespace(), obj.GetName())); {
	case !slices.Contains(s.Resources(), resource):
		return nil
	case have == nil:
		return []option{{label: who + " makes " + what, do: func() {
			w.request(s, "user", http.MethodPost, p, "application/json", obj.Object)
		}}}
	case have.GetDeletionTimestamp() != nil:
		return nil
	}
	return append(w.edits(s, who, resource, obj, edits...), option{label: who + " deletes " + what, do: func() {
		w.request(s, "user", http.MethodDelete, p+"/"+obj.GetName(), "application/json", nil)
	}})
}

// edits returns the steps that change an object.
func (w *world) edits(s *apiserver.Server, who string, resource schema.GroupResource, obj *unstructured.Unstructured, edits ...edit) []option {
	out := make([]option, 0, len(edits))
	for _, e := range edits {
		p := path(resource, obj.GroupVersionKind().Version, obj.GetNamespace(), obj.GetName())
		out = append(out, option{label: who + " " + e.step, do: func() { w.patch(s, "user", p, e.patch) }})
	}
	return out
}
