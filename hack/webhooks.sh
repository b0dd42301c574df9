#!/usr/bin/env bash
# Builds the admission code of Cluster API's providers, and records what it says of the reflection of each layout. It
# compiles the providers, which takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p bin/webhooks
for provider in capa capg; do
  (cd "hack/webhooks/$provider" && CGO_ENABLED=0 GOWORK=off go build -trimpath -o "../../../bin/webhooks/$provider" .)
done
MASTHEAD_WEBHOOKS=$PWD/bin/webhooks go test ./pkg/reflection -run TestReflect_Webhooks -count=1 -v
