// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package processmetrics

import (
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/masthead-dev/masthead/internal/version"
)

func TestBuildInfo(t *testing.T) {
	registry := prometheus.NewRegistry()
	RegisterBuildInfo(registry)
	want := `# HELP masthead_build_info Always 1. The version of the manager and of the Go that built it.
# TYPE masthead_build_info gauge
masthead_build_info{go_version="` + runtime.Version() + `",version="` + version.Version + `"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
