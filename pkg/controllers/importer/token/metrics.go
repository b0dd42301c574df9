// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/oauth2"

	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
	"github.com/masthead-dev/masthead/pkg/metric"
)

// Results of a token request.
const (
	tokenGranted = "granted"
	tokenRefused = "refused"
	tokenFailed  = "failed"

	// ImportedClusters replaces the endpoint for token requests to imported clusters. Clusters are not distinguished:
	// others write their addresses.
	ImportedClusters = "imported-clusters"
)

// Register counts the token requests. The series are those of the operator's URLs, and exist from the beginning:
// nothing that a ClusterImport or a key file names becomes a label.
func (t *Tokens) Register(reg prometheus.Registerer) {
	t.requests = metric.NewCounter(reg, metric.Definition{
		Name: "masthead_import_token_requests_total",
		Help: "Requests for tokens of imported clusters: of the sources that create them, and of ServiceAccounts. " +
			"Refused: the endpoint returns an error. Failed: it cannot be reached, or returns no token.",
		Labels: []metric.Label{
			{Name: "token_endpoint", Values: "a value of --allowed-token-endpoints, or " + ImportedClusters},
			{Name: "result", Values: tokenGranted + ", " + tokenRefused + ", " + tokenFailed},
		},
		See: "importer.md#kubeconfig",
	})
	endpoints := []string{ImportedClusters}
	for _, endpoint := range t.allowed {
		endpoints = append(endpoints, endpoint.String())
	}
	for _, endpoint := range endpoints {
		for _, result := range []string{tokenGranted, tokenRefused, tokenFailed} {
			t.requests.WithLabelValues(endpoint, result)
		}
	}
}

// metricResult is the result of a request.
func metricResult(err error) string {
	_, endpoint := errors.AsType[*oauth2.RetrieveError](err)
	_, cluster := errors.AsType[*workload.StatusError](err)
	switch {
	case err == nil:
		return tokenGranted
	case endpoint, cluster:
		return tokenRefused
	default:
		return tokenFailed
	}
}
