#!/usr/bin/env bash
# Measures how Masthead and kubernetes-sigs/application keep the status of Applications on the same API server.
# Arguments are passed to test/bench/application (--help lists them); --peer=none leaves kubernetes-sigs/application
# out.
set -euo pipefail
cd "$(dirname "$0")/.."
export MASTHEAD_CONTROLPLANE_BIN=${MASTHEAD_CONTROLPLANE_BIN:-$PWD/bin/controlplane}
export KUBEBUILDER_ASSETS=$MASTHEAD_CONTROLPLANE_BIN
export GOWORK=off
peer=()
if [[ " $* " != *" --peer="* && " $* " != *" --peer "* ]]; then
  # go.mod and go.sum there pin it and its dependencies.
  version=$(cd test/bench/application/peer && go list -m -f '{{.Version}}' sigs.k8s.io/application)
  program=$PWD/bin/peers/application-$version
  if [[ ! -x $program ]]; then
    echo "building kubernetes-sigs/application $version (a minute or two the first time)" >&2
    mkdir -p bin/peers
    (cd test/bench/application/peer && go build -mod=readonly -trimpath -o "$program" sigs.k8s.io/application)
  fi
  peer=(--peer "$program")
fi
go -C test build -o ../bin/bench-application ./bench/application
bin/bench-application "${peer[@]}" "$@"
