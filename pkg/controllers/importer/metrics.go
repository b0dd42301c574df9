// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/token"
	"github.com/masthead-dev/masthead/pkg/metric"
)

// states counts imports by state.
type states struct {
	mu    sync.Mutex
	known map[types.NamespacedName]string
}

func newStates() *states { return &states{known: map[types.NamespacedName]string{}} }

// register publishes the counts.
func (s *states) register(reg prometheus.Registerer) {
	metric.RegisterGauges(reg, metric.Definition{
		Name: "masthead_imports",
		Help: "ClusterImports by state.",
		Labels: []metric.Label{{
			Name: "state", Values: stateReady + ", " + stateProgressing + ", " + stateStalled + ", " + stateUnimporting,
		}},
		See: "importer.md",
	}, s.count)
}

// RegisterMetrics registers the metrics of this package without any data, for the reference documentation.
func RegisterMetrics(reg prometheus.Registerer) {
	(&token.Tokens{}).Register(reg)
	newStates().register(reg)
}

func (s *states) set(key types.NamespacedName, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[key] = state
}

func (s *states) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, key)
}

func (s *states) count(emit func(value float64, labels ...string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[string]int{stateReady: 0, stateProgressing: 0, stateStalled: 0, stateUnimporting: 0}
	for _, state := range s.known {
		counts[state]++
	}
	for state, n := range counts {
		emit(float64(n), state)
	}
}

func metricState(status fleetv1alpha1.ClusterImportStatus, deleting bool) string {
	switch {
	case deleting:
		return stateUnimporting
	case meta.IsStatusConditionTrue(status.Conditions, fleetv1alpha1.ConditionStalled):
		return stateStalled
	case meta.IsStatusConditionTrue(status.Conditions, fleetv1alpha1.ConditionReady):
		return stateReady
	default:
		return stateProgressing
	}
}

// The states for counting imports.
const (
	stateReady       = "ready"
	stateProgressing = "progressing"
	stateStalled     = "stalled"
	stateUnimporting = "unimporting"
)
