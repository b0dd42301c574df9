#!/usr/bin/env bash
# Measures what hostile API servers cost the honest clusters that are enrolled beside them, and the manager. Arguments
# are passed to test/bench/hostile (--help lists them).
set -euo pipefail
cd "$(dirname "$0")/.."
export MASTHEAD_CONTROLPLANE_BIN=${MASTHEAD_CONTROLPLANE_BIN:-$PWD/bin/controlplane}
export KUBEBUILDER_ASSETS=$MASTHEAD_CONTROLPLANE_BIN
export GOWORK=off
go -C test build -o ../bin/bench-hostile ./bench/hostile
bin/bench-hostile "$@"
