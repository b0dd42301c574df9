// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/oauth2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/metric"
)

// The states by which imports are counted.
const (
	stateReady       = "ready"
	stateProgressing = "progressing"
	stateStalled     = "stalled"
	stateUnimporting = "unimporting"
)

// states counts imports by state.
type states struct {
	desc *prometheus.Desc

	mu    sync.Mutex
	known map[types.NamespacedName]string
}

func newStates() *states { return &states{known: map[types.NamespacedName]string{}} }

// register publishes the counts.
func (s *states) register(reg prometheus.Registerer) error {
	s.desc = metric.NewGaugeDesc(reg, metric.Definition{
		Name: "masthead_imports",
		Help: "ClusterImports by state. Only where the manager runs with --imports.",
		Labels: []metric.Label{{
			Name: "state", Values: stateReady + ", " + stateProgressing + ", " + stateStalled + ", " + stateUnimporting,
		}},
		See: "importer.md",
	})
	return reg.Register(s)
}

// RegisterMetrics registers the metrics of this package without anything that they count, for the reference.
func RegisterMetrics(reg prometheus.Registerer) error {
	(&tokens{}).register(reg)
	return newStates().register(reg)
}

// What came of a request for a token.
const (
	tokenGranted = "granted"
	tokenRefused = "refused"
	tokenFailed  = "failed"

	// importedClusters is in place of the endpoint where a cluster is asked for a token of its ServiceAccount. Clusters
	// are not told apart: their addresses are what others write.
	importedClusters = "imported-clusters"
)

// register counts the requests for tokens. The series are those of the URLs that the operator gave, and there from the
// beginning: nothing that a ClusterImport or a key file names becomes a label.
func (t *tokens) register(reg prometheus.Registerer) {
	t.requests = metric.NewCounter(reg, metric.Definition{
		Name: "masthead_import_token_requests_total",
		Help: "Requests for tokens of imported clusters: of the sources that make them, and of ServiceAccounts. " +
			"Refused: the endpoint answers with an error. Failed: it cannot be reached, or gives no token.",
		Labels: []metric.Label{
			{Name: "token_endpoint", Values: "a value of --allowed-token-endpoints, or " + importedClusters},
			{Name: "result", Values: tokenGranted + ", " + tokenRefused + ", " + tokenFailed},
		},
		See: "importer.md#kubeconfig",
	})
	endpoints := []string{importedClusters}
	for _, endpoint := range t.allowed {
		endpoints = append(endpoints, endpoint.String())
	}
	for _, endpoint := range endpoints {
		for _, result := range []string{tokenGranted, tokenRefused, tokenFailed} {
			t.requests.WithLabelValues(endpoint, result)
		}
	}
}

// resultOf is what came of a request.
func resultOf(err error) string {
	_, endpoint := errors.AsType[*oauth2.RetrieveError](err)
	_, cluster := errors.AsType[*statusError](err)
	switch {
	case err == nil:
		return tokenGranted
	case endpoint, cluster:
		return tokenRefused
	default:
		return tokenFailed
	}
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

// Describe implements prometheus.Collector.
func (s *states) Describe(ch chan<- *prometheus.Desc) { ch <- s.desc }

// Collect implements prometheus.Collector.
func (s *states) Collect(ch chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[string]int{stateReady: 0, stateProgressing: 0, stateStalled: 0, stateUnimporting: 0}
	for _, state := range s.known {
		counts[state]++
	}
	for state, n := range counts {
		ch <- prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, float64(n), state)
	}
}

func stateOf(status fleetv1alpha1.ClusterImportStatus, deleting bool) string {
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
