// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hubaccess

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
)

func TestIdentitiesAreCountedByWhetherTheyCanBeUsed(t *testing.T) {
	key := func(cluster mcr.ClusterName, name string) Key {
		return Key{Cluster: cluster, Secret: types.NamespacedName{Namespace: "masthead-system", Name: name}}
	}
	i := &Clients{entries: map[mcr.ClusterName]map[Key]*identityEntry{"capi/fleet/w1": {
		key("capi/fleet/w1", "a"): {}, key("capi/fleet/w1", "b"): {},
		key("capi/fleet/w1", "c"): {refused: true},
		key("capi/fleet/w1", "d"): {problem: &condition.Error{Reason: fleetv1alpha1.ReasonCredentialsMissing}},
	}, "": {{ServiceAccount: types.NamespacedName{Namespace: "bar", Name: "agent"}}: {}}}}
	registry := prometheus.NewPedanticRegistry()
	RegisterMetrics(registry, i)
	check := func(why, want string) {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		if want != "" {
			want = "# HELP masthead_agent_identities " + strings.ReplaceAll(families[0].GetHelp(), `\`, `\\`) +
				"\n# TYPE masthead_agent_identities gauge\n" + want
		}
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
			t.Errorf("%s\n%v", why, err)
		}
	}
	check("each reason counts", `masthead_agent_identities{cluster_name="hub",cluster_namespace="",reason="Usable",source="hub"} 1
masthead_agent_identities{cluster_name="w1",cluster_namespace="fleet",reason="CredentialsMissing",source="capi"} 1
masthead_agent_identities{cluster_name="w1",cluster_namespace="fleet",reason="CredentialsRejected",source="capi"} 1
masthead_agent_identities{cluster_name="w1",cluster_namespace="fleet",reason="Usable",source="capi"} 2
`)
	i.Forget("capi/fleet/w1")
	i.Forget("")
	check("a cluster that is gone has no series", "")
}
