#!/usr/bin/env bash
# Draws panels of the dashboards for the documentation, from what Prometheus has seen of a run of the end-to-end suite:
# `MASTHEAD_E2E_DIR=DIR make test-e2e`, and then `draw-panels.sh DIR`.
set -euo pipefail
data=$(realpath "${1:?the folder of the run}")/prometheus/data
cd "$(dirname "$0")/.."
prometheus=$(hack/prometheus.sh prometheus)
out=$PWD/docs/images
mkdir -p "$out"
cd hack/tools/monitoring
exec go run ./draw --prometheus="$prometheus" --data="$data" --out="$out" \
  fleet-overview "Clusters by state" cluster-detail "Requests by verb"
