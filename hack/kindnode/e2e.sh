#!/usr/bin/env bash
# Runs test/e2e in kind: a hub and two workload clusters, with the manager as Pods. It needs bin/controlplane.
#   E2E_KIND_IMAGE=kindest/node:v1.37.0   a node image that the engine has or can pull; otherwise one is built from source
#   FOCUS=regexp chooses specs    VERBOSE=true shows each step    MASTHEAD_E2E_DIR=folder leaves the clusters and their kubeconfigs
set -euo pipefail
cd "$(dirname "$0")/../.."
begun=$SECONDS
took() { echo "e2e-kind: $1 took $((SECONDS - begun)) s" >&2; begun=$SECONDS; }

# Inside the engine.
if [[ ${1:-} == --engine ]]; then
  if [[ -n ${KIND_NODE_FILE:-} ]]; then
    # The name is in the file. An image that the engine already has is not loaded again.
    if ! docker image inspect "$E2E_KIND_IMAGE" >/dev/null 2>&1; then docker load --quiet --input "$KIND_NODE_FILE" >&2; fi
    took "giving the engine the node image"
  fi
  sample() { # Every five seconds, the memory of all running containers in MiB, and the number of these containers.
    while sleep 5; do
      docker stats --no-stream --format '{{.Name}} {{.MemUsage}}' 2>/dev/null | awk -v now="$(date +%s)" '
        {value = $2; unit = value; gsub(/[0-9.]/, "", unit); gsub(/[A-Za-z]/, "", value)
         sum += unit == "GiB" ? value * 1024 : unit == "MiB" ? value : 0; n++} END {if (n) printf "%d %d\n", sum, n}' || true
    done
  }
  sample >bin/kindnode/memory &
  sampler=$!
  status=0
  (cd test/e2e && MASTHEAD_E2E_FLEET=kind exec ../../bin/kindnode/e2e.test -test.timeout 90m -ginkgo.timeout 90m -test.v -ginkgo.v="${VERBOSE:-false}" ${FOCUS:+-ginkgo.focus="$FOCUS"} \
    -ginkgo.json-report="$PWD/../../bin/kindnode/report.json") || status=$?
  kill $sampler
  took "the suite"
  sort -n bin/kindnode/memory | tail -n 1 | awk '{print "e2e-kind: the " $2 " containers had " $1 " MiB at most"}' >&2
  exit $status
fi

export MASTHEAD_CONTROLPLANE_BIN=${MASTHEAD_CONTROLPLANE_BIN:-$PWD/bin/controlplane}
export MASTHEAD_KIND_VERSION=${VERSION:-$(awk '/^## [0-9]/ {print "v" $2; exit}' CHANGELOG.md)}
if [[ -z ${E2E_KIND_IMAGE:-} ]]; then
  KIND_NODE_FILE=$(hack/kindnode/image.sh)
  # The tag is at the beginning of the archive, in its manifest.
  E2E_KIND_IMAGE=$(tar -xOf "$KIND_NODE_FILE" --occurrence manifest.json | sed -E 's/.*"RepoTags":\["([^"]*)"\].*/\1/')
  export KIND_NODE_FILE E2E_KIND_IMAGE
  took "the node image"
fi
hack/kindnode/programs.sh kind
VERSION=$MASTHEAD_KIND_VERSION hack/kindnode/images.sh
MASTHEAD_HELM_BIN=$(hack/tool.sh helm)
export MASTHEAD_HELM_BIN
# With the flags of bin/manager, so that packages that both use are compiled only once.
CGO_ENABLED=0 GOFLAGS="-trimpath $(go env GOFLAGS)" go -C test test -c -o ../bin/kindnode/e2e.test ./e2e
took "the programs and images"
hack/kindnode/engine.sh hack/kindnode/e2e.sh --engine
