#!/usr/bin/env bash
# Regenerates what is generated: deep copies beside the types, and the CRDs in config/crd/bases.
set -euo pipefail
cd "$(dirname "$0")/.."
tool=$(hack/tool.sh controller-gen)
"$tool" object:headerFile=hack/boilerplate.go.txt paths=./apis/...
"$tool" crd paths=./apis/... output:crd:dir=config/crd/bases
