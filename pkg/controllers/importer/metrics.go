// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/token"
	"github.com/masthead-dev/masthead/pkg/metric"
)

// scrapeTimeout is how long a scrape waits for the cache of imports.
const scrapeTimeout = time.Second

// registerImports publishes the imports in the hub's cache by state.
func registerImports(reg prometheus.Registerer, hub client.Reader) {
	metric.RegisterGauges(reg, metric.Definition{
		Name: "masthead_imports",
		Help: "ClusterImports by state.",
		Labels: []metric.Label{{
			Name: "state", Values: stateReady + ", " + stateProgressing + ", " + stateStalled + ", " + stateUnimporting,
		}},
		See: "importer.md",
	}, func(emit func(float64, ...string)) {
		imports := &fleetv1alpha1.ClusterImportList{}
		ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
		defer cancel()
		// A replica that does not hold the lease, or whose cache has not synced yet, publishes 0.
		_ = hub.List(ctx, imports, client.UnsafeDisableDeepCopy)
		counts := map[string]int{stateReady: 0, stateProgressing: 0, stateStalled: 0, stateUnimporting: 0}
		for i := range imports.Items {
			if imp := &imports.Items[i]; imp.DeletionTimestamp.IsZero() || mayHave(imp) {
				counts[metricState(imp)]++
			}
		}
		for state, n := range counts {
			emit(float64(n), state)
		}
	})
}

// RegisterMetrics registers the metrics of this package without any data, for the reference documentation.
func RegisterMetrics(reg prometheus.Registerer) {
	(&token.Tokens{}).Register(reg)
	registerImports(reg, nil)
}

func metricState(imp *fleetv1alpha1.ClusterImport) string {
	switch {
	case !imp.DeletionTimestamp.IsZero():
		return stateUnimporting
	case meta.IsStatusConditionTrue(imp.Status.Conditions, fleetv1alpha1.ConditionStalled):
		return stateStalled
	case meta.IsStatusConditionTrue(imp.Status.Conditions, fleetv1alpha1.ConditionReady):
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
