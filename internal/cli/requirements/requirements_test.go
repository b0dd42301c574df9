// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package requirements

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/masthead-dev/masthead/internal/cli/fleet"
)

func object(t *testing.T, document string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestRows(t *testing.T) {
	clusters := []fleet.Cluster{{Name: "capi/a/w1", Identifier: "id1"}, {Name: "capi/a/w2", Identifier: "id2"}}
	inHub := func(namespace, identifier, from string) string {
		return `{kind: Database, metadata: {name: sql, namespace: ` + namespace + `, annotations: {agent.crossplane.io/source-uid: ` + identifier +
			`, agent.crossplane.io/source-namespace: ` + from + `}}, status: {conditions: [{type: Ready, status: "True"}]}}`
	}
	claim := func(status, annotations string) string {
		return `{kind: Database, metadata: {name: sql, namespace: shop, uid: u, annotations: {` + annotations + `}}, status: {conditions: [` + status + `]}}`
	}
	const synced = `{type: AgentSynced, status: "True", reason: Synced, message: m}, {type: Ready, status: "True"}`
	for name, tc := range map[string]struct {
		reason    string
		hub       []string
		claims    map[string]string
		unqueried bool
		want      []Row
	}{
		"Pair": {
			reason: "A claim and its object are one row.",
			hub:    []string{inHub("bar", "id1", "shop")}, claims: map[string]string{"capi/a/w1": claim(synced, "")},
			want: []Row{{Cluster: "capi/a/w1", Namespace: "shop", Kind: "Database", Name: "sql", Hub: "bar/sql", State: "Synced", Message: "m", Ready: "True"}},
		},
		"Conflict": {
			reason: "The holder of a name is shown by the name of its cluster.",
			hub:    []string{inHub("bar", "id1", "shop")},
			claims: map[string]string{"capi/a/w2": claim(`{type: AgentSynced, status: "False", reason: Conflict, message: m}`,
				`agent.masthead.dev/conflict: 'the namespace "shop" of the cluster with the identifier "id1"'`), "capi/a/w1": claim(synced, "")},
			want: []Row{
				{Cluster: "capi/a/w1", Namespace: "shop", Kind: "Database", Name: "sql", Hub: "bar/sql", State: "Synced", Message: "m", Ready: "True"},
				{Cluster: "capi/a/w2", Namespace: "shop", Kind: "Database", Name: "sql", State: "Conflict", Message: "m", Holder: "capi/a/w1 in shop"},
			},
		},
		"UnknownHolder": {
			reason: "What the claim says of a holder that cannot be seen is all there is.",
			claims: map[string]string{"capi/a/w2": claim(`{type: AgentSynced, status: "False", reason: Conflict}`, `agent.masthead.dev/conflict: another cluster`)},
			want:   []Row{{Cluster: "capi/a/w2", Namespace: "shop", Kind: "Database", Name: "sql", State: "Conflict", Holder: "another cluster"}},
		},
		"Recorded": {
			reason: "Of two objects the claim's is the one that it records.",
			hub:    []string{inHub("new", "id1", "shop"), inHub("old", "id1", "shop")},
			claims: map[string]string{"capi/a/w1": claim(synced, "agent.masthead.dev/hub-object: old/x/u")},
			want:   []Row{{Cluster: "capi/a/w1", Namespace: "shop", Kind: "Database", Name: "sql", Hub: "old/sql", State: "Synced", Message: "m", Ready: "True"}},
		},
		"Left": {
			reason: "An object without a claim goes on costing.",
			hub:    []string{inHub("bar", "id1", "shop")},
			want:   []Row{{Cluster: "capi/a/w1", Namespace: "shop", Kind: "Database", Name: "sql", Hub: "bar/sql", State: StateNoClaim, Message: "The cluster has no such claim.", Ready: "True"}},
		},
		"NotAsked": {
			reason: "It is unknown whether a cluster that was not queried has the claim.", unqueried: true,
			hub:  []string{inHub("bar", "id1", "shop")},
			want: []Row{{Cluster: "capi/a/w1", Namespace: "shop", Kind: "Database", Name: "sql", Hub: "bar/sql", State: StateNotAsked, Message: "The cluster could not be queried.", Ready: "True"}},
		},
		"Lost": {
			reason: "What a cluster left that is gone is found by its identifier.",
			hub:    []string{inHub("bar", "id9", "shop")},
			want:   []Row{{Cluster: "id9", Namespace: "shop", Kind: "Database", Name: "sql", Hub: "bar/sql", State: StateNoCluster, Message: "No enrolled cluster has this identifier.", Ready: "True"}},
		},
		"NotLookedAt": {
			reason: "A claim without the condition has not been looked at.",
			claims: map[string]string{"capi/a/w1": claim("", "")},
			want:   []Row{{Cluster: "capi/a/w1", Namespace: "shop", Kind: "Database", Name: "sql", State: StateNotLookedAt}},
		},
		"HubOnly": {reason: "What was made in the hub is no claim.", hub: []string{`{kind: Database, metadata: {name: a, namespace: b}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			f := Facts{Clusters: clusters, Queried: map[string]bool{"capi/a/w1": !tc.unqueried, "capi/a/w2": true}}
			for _, document := range tc.hub {
				f.Hub = append(f.Hub, object(t, document))
			}
			for cluster, document := range tc.claims {
				f.Claims = append(f.Claims, Claim{Cluster: cluster, Object: object(t, document)})
			}
			if diff := cmp.Diff(tc.want, Rows(f)); diff != "" {
				t.Errorf("%s %s", tc.reason, diff)
			}
		})
	}
}
