// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestMetrics(t *testing.T) {
	b := NewBudget(64 << 20)
	a := b.Account("default", "capi/ns/a", nil)
	if err := a.Holder(nil).Hold(1 << 20); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	RegisterMetrics(registry, b)
	want := `# HELP masthead_cluster_memory_bytes Estimated use of the memory budget on behalf of a connected cluster. For the Nodes of the clusters that a namespace imports, the name of the cluster is ClusterImports/ and the namespace, without a namespace and a source.
# TYPE masthead_cluster_memory_bytes gauge
masthead_cluster_memory_bytes{cluster_name="a",cluster_namespace="ns",source="capi"} 1.048576e+06
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "masthead_cluster_memory_bytes"); err != nil {
		t.Error(err)
	}
	a.Close()
	if n, err := testutil.GatherAndCount(registry, "masthead_cluster_memory_bytes"); n != 0 || err != nil {
		t.Errorf("the series must go with the connection, got %d, %v", n, err)
	}
}
