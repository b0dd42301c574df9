#!/usr/bin/env bash
# Builds programs with the admission webhooks and the reconcilers of Cluster API's providers, runs the importer's tests
# with the webhooks in the hub, records what they refuse and change of each layout, and compares the reconcilers with
# their emulators. Compiling the providers takes a quarter of an hour once.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p bin/webhooks
for provider in capa capg capz; do
  (cd "hack/webhooks/$provider" && CGO_ENABLED=0 GOWORK=off go build -trimpath -o "../../../bin/webhooks/$provider" .)
done
export MASTHEAD_WEBHOOKS=$PWD/bin/webhooks
export MASTHEAD_CONTROLPLANE_BIN=${MASTHEAD_CONTROLPLANE_BIN:-$PWD/bin/controlplane}
export KUBEBUILDER_ASSETS=$MASTHEAD_CONTROLPLANE_BIN
go test ./pkg/controllers/importer -count=1 -timeout 40m
go -C test test ./takeover -run TestProviders -count=1 -timeout 40m
