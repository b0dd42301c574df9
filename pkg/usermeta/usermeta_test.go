// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package usermeta

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOwned(t *testing.T) {
	cases := map[string]struct {
		reason string
		key    string
		also   []string
		owned  bool
	}{
		"Plain":             {reason: "A key without a prefix is the user's.", key: "tier", owned: true},
		"OwnDomain":         {reason: "So is one of a domain that is not reserved.", key: "acmeco.org/tier", owned: true},
		"App":               {reason: "app.kubernetes.io is meant for users.", key: "app.kubernetes.io/name", owned: true},
		"BelowApp":          {reason: "What is below it is not.", key: "sub.app.kubernetes.io/name"},
		"SimilarDomain":     {reason: "A domain that only ends in the same letters is another one.", key: "notcrossplane.io/x", owned: true},
		"Crossplane":        {reason: "What steers Crossplane is not the user's.", key: "crossplane.io/paused"},
		"Package":           {reason: "Nor is anything below its domain.", key: "pkg.crossplane.io/package"},
		"Masthead":          {reason: "What Masthead recognises its objects by is its own.", key: "masthead.dev/managed-by"},
		"Kubectl":           {reason: "kubectl keeps the whole object there.", key: "kubectl.kubernetes.io/last-applied-configuration"},
		"ApplySet":          {reason: "kubectl prunes by it.", key: "applyset.kubernetes.io/part-of"},
		"Inventory":         {reason: "kpt and Flux's peers prune by it.", key: "config.k8s.io/owning-inventory"},
		"ClusterAPI":        {reason: "*.x-k8s.io is Kubernetes'.", key: "cluster.x-k8s.io/cluster-name"},
		"ArgoCDAnnotation":  {reason: "Argo CD prunes by its tracking annotation.", key: "argocd.argoproj.io/tracking-id"},
		"ArgoCDLabel":       {reason: "Argo CD prunes by its tracking label.", key: "app.kubernetes.io/instance"},
		"ManagedBy":         {reason: "Helm adopts by it.", key: "app.kubernetes.io/managed-by"},
		"FluxKustomization": {reason: "Flux prunes by it.", key: "kustomize.toolkit.fluxcd.io/name"},
		"FluxHelmRelease":   {reason: "Flux knows its releases' objects by it.", key: "helm.toolkit.fluxcd.io/namespace"},
		"FluxOperator":      {reason: "Flux Operator prunes by it.", key: "resourceset.fluxcd.controlplane.io/name"},
		"HelmRelease":       {reason: "Helm deletes by it.", key: "meta.helm.sh/release-name"},
		"HelmChart":         {reason: "The chart is not installed on the other side.", key: "helm.sh/chart"},
		"Kapp":              {reason: "kapp prunes by it.", key: "kapp.k14s.io/app"},
		"ConfigSync":        {reason: "Config Sync manages by it.", key: "configsync.gke.io/resource-id"},
		"Fleet":             {reason: "Fleet's object sets prune by it.", key: "objectset.rio.cattle.io/hash"},
		"Sveltos":           {reason: "Sveltos withdraws by it.", key: "projectsveltos.io/reference-name"},
		"Skaffold":          {reason: "Skaffold cleans up by it.", key: "skaffold.dev/run-id"},
		"Velero":            {reason: "Restored objects are selected by it.", key: "velero.io/restore-name"},
		"Pulumi":            {reason: "It is about the object where Pulumi made it.", key: "pulumi.com/patchForce"},
		"Kyverno":           {reason: "Kyverno deletes by it.", key: "cleanup.kyverno.io/ttl"},
		"Janitor":           {reason: "kube-janitor deletes by it.", key: "janitor/ttl"},
		"ExtraKey":          {reason: "The caller's keys are not the user's.", key: "release", also: []string{"release"}},
		"ExtraDomain":       {reason: "Nor are those of the caller's domains.", key: "acmeco.org/tool", also: []string{"acmeco.org/*"}},
		"ExtraSubdomain":    {reason: "Nor what is below them.", key: "deploy.acmeco.org/tool", also: []string{"acmeco.org/*"}},
		"ExtraOtherKey":     {reason: "A key is not a prefix.", key: "acmeco.org/tools", also: []string{"acmeco.org/tool"}, owned: true},
		"ExtraOtherDomain":  {reason: "A domain covers no key without a prefix.", key: "acmeco.org", also: []string{"acmeco.org/*"}, owned: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := map[string]string{}
			if tc.owned {
				want[tc.key] = "v"
			}
			if diff := cmp.Diff(want, Owned(map[string]string{tc.key: "v"}, tc.also...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// The documented list is the one in the code.
func TestReservedIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/claims.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "<!-- reserved metadata: begin -->\n")
	table, _, ended := strings.Cut(table, "<!-- reserved metadata: end -->")
	if !found || !ended {
		t.Fatal("docs/claims.md has no table of reserved metadata")
	}
	var want strings.Builder
	want.WriteString("| Whose | Keys | What they would do on the other side |\n|---|---|---|\n")
	for _, r := range Reserved() {
		keys := "`" + strings.Join(r.Keys, "`, `") + "`"
		if len(r.Except) > 0 {
			keys += " but not the prefix `" + strings.Join(r.Except, "`, `") + "`"
		}
		want.WriteString("| " + r.Owner + " | " + keys + " | " + r.Why + " |\n")
	}
	if diff := cmp.Diff(want.String(), table); diff != "" {
		t.Errorf("docs/claims.md is not what the code does; the table should be (-want +got):\n%s\n%s", diff, want.String())
	}
}
