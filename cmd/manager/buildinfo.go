// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/masthead-dev/masthead/internal/version"
)

// registerBuildInfo adds the metric masthead_build_info: always 1, with the version as a label, so that a dashboard can
// show which versions run and when one was rolled out.
func registerBuildInfo(to prometheus.Registerer) error {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "masthead_build_info",
		Help:        "Always 1. The version of the manager and of the Go that built it.",
		ConstLabels: prometheus.Labels{"version": version.Version, "go_version": runtime.Version()},
	})
	info.Set(1)
	if err := to.Register(info); err != nil {
		return fmt.Errorf("cannot register masthead_build_info: %w", err)
	}
	return nil
}
