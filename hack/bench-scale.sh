#!/usr/bin/env bash
# Measures the manager with many workload clusters, played on one API server. Arguments are passed to test/bench/scale
# (--help lists them).
set -euo pipefail
cd "$(dirname "$0")/.."
export MASTHEAD_CONTROLPLANE_BIN=${MASTHEAD_CONTROLPLANE_BIN:-$PWD/bin/controlplane}
export KUBEBUILDER_ASSETS=$MASTHEAD_CONTROLPLANE_BIN
export GOWORK=off
go -C test build -o ../bin/bench-scale ./bench/scale
bin/bench-scale "$@"
