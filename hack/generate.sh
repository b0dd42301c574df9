#!/usr/bin/env bash
# Regenerates what is generated: deep copies beside the types, the CRDs of the hub in config/crd/bases and those of
# workload clusters, which the manager installs itself, in config/crd/workload, the schema of spec.references for
# authors, the pages that list the library of health rules, the metrics, the kinds, the reasons, the roles and the
# flags, the vendored definition of ClusterProfile, and what the charts install.
set -euo pipefail
cd "$(dirname "$0")/.."
# With the settings of bin/manager, so that packages that both use are compiled only once.
export CGO_ENABLED=0 GOFLAGS="-trimpath $(go env GOFLAGS)"
tool=$(hack/tool.sh controller-gen)
"$tool" object:headerFile=hack/boilerplate.go.txt paths=./apis/...
"$tool" crd paths=./apis/fleet/... output:crd:dir=config/crd/bases
# A Pod template has its own metadata, which would be dropped without the option.
"$tool" crd:generateEmbeddedObjectMeta=true paths=./apis/apps/... output:crd:dir=config/crd/workload
go run ./hack/trimcrd config/crd/workload/apps.masthead.dev_applications.yaml spec.healthCheck.template
"$tool" object:headerFile=hack/boilerplate.go.txt crd paths=./pkg/references/testdata/managedexample output:crd:dir=pkg/references/testdata/managedexample
page=$(mktemp)
go run ./hack/referenceschema pkg/references/testdata/managedexample/network.example.org_subnets.yaml >"$page"
cat "$page" >config/references/schema.yaml
go run ./hack/healthlibrary >"$page"
cat "$page" >docs/health-library.md
go run ./hack/metricreference >"$page"
cat "$page" >docs/reference/metrics.md
go run ./hack/dashboards config/grafana
go run ./hack/reference docs/reference
MASTHEAD_WRITE_REFERENCE=true go test -count=1 -run '^TestFlagReference$' ./cmd/manager >/dev/null
rm -f "$page"
inventory=$(go list -m -f '{{.Dir}}' sigs.k8s.io/cluster-inventory-api)
install -m 0644 "$inventory/config/crd/bases/multicluster.x-k8s.io_clusterprofiles.yaml" config/clusterprofiles/
hack/charts.sh
