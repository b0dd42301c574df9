// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/masthead-dev/masthead/pkg/controllers/application"
)

// ApplicationOptions are the limits for Applications.
type ApplicationOptions struct {
	// Workers is how many Applications are reconciled at once.
	Workers int `json:"workers"`

	// Metrics is PerCluster or PerApplication, which adds some series for each Application of the fleet.
	Metrics string `json:"metrics"`

	// HealthLibrary enables the built-in health rules for components whose kind has no HealthRule in the hub.
	HealthLibrary bool `json:"healthLibrary"`
}

// Values of ApplicationOptions.Metrics.
const (
	metricsPerCluster     = "PerCluster"
	metricsPerApplication = "PerApplication"
)

// applicationMetrics are the values of ApplicationOptions.Metrics.
var applicationMetrics = []string{metricsPerCluster, metricsPerApplication} //nolint:gochecknoglobals // A constant.

func defaultApplicationOptions() ApplicationOptions {
	return ApplicationOptions{
		Workers: application.DefaultMaxConcurrentReconciles, Metrics: metricsPerCluster, HealthLibrary: true,
	}
}

// bind makes a flag of each option.
func (o *ApplicationOptions) bind(f *pflag.FlagSet) {
	f.IntVar(&o.Workers, "application-workers", o.Workers, "number of Applications that are reconciled concurrently")
	f.BoolVar(&o.HealthLibrary, "health-library", o.HealthLibrary,
		"assess components by the built-in health rules, if the hub has no HealthRule for their kind")
	f.StringVar(&o.Metrics, "application-metrics", o.Metrics,
		"whether there are series per cluster only, or also per Application: "+strings.Join(applicationMetrics, ", "))
}

// validate reports what is wrong.
func (o *ApplicationOptions) validate(problem func(wrong bool, format string, args ...any)) {
	problem(o.Workers < 1, "application-workers: must be at least 1")
	problem(!slices.Contains(applicationMetrics, o.Metrics),
		"application-metrics: %q is not one of %s", o.Metrics, strings.Join(applicationMetrics, ", "))
}
