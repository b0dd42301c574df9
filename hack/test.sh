#!/usr/bin/env bash
# Runs the tests: `test.sh` all, `test.sh unit` without the fleet, `test.sh e2e` with the fleet only.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-all}
export MASTHEAD_CONTROLPLANE_BIN=${MASTHEAD_CONTROLPLANE_BIN:-$PWD/bin/controlplane}
export KUBEBUILDER_ASSETS=$MASTHEAD_CONTROLPLANE_BIN
# For a busy machine; envtest allows 20 seconds each.
export KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=2m KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT=2m
reports=bin/test
rm -rf "$reports"
mkdir -p "$reports"

if [[ $what != e2e ]]; then
  echo "== unit and integration tests, with the race detector (the first run compiles everything twice: allow some minutes)"
  mapfile -t packages < <(go list ./... | grep -v '/test/e2e$')
  # Packages run four at a time, on two cores too: most of what they do is wait for API servers, which some start for themselves.
  gotestsum=$(hack/tool.sh gotestsum)
  hack/tool.sh helm >/dev/null # For test/charts, whose tests would wait for the compiler.
  "$gotestsum" --format=pkgname-and-test-fails --jsonfile="$reports/packages.json" -- -race -p 4 -timeout 40m "${packages[@]}"
  (cd hack/release && go test ./...)
  # The managed resources of the importer in the typed structs of the AWS provider: a module of its own, which compiles for minutes once.
  (cd test/providertypes && go test ./...)
fi
if [[ $what != unit ]]; then
  # What is tested is what is released: the manager out of the image.
  platform=linux/$(go env GOARCH)
  echo "== a release for $platform, and the manager unpacked from its image"
  VERSION=$(awk '/^## [0-9]/ {print "v" $2; exit}' CHANGELOG.md) PLATFORMS=$platform DIST=$PWD/bin/dist \
    KUBECTL=$MASTHEAD_CONTROLPLANE_BIN/kubectl hack/release.sh
  rm -rf bin/image
  bin/tools/release unpack --image=bin/dist/masthead.tar --platform="$platform" --out=bin/image
  export MASTHEAD_MANAGER_BIN=${MASTHEAD_MANAGER_BIN:-$PWD/bin/image/manager}
  echo "== end-to-end tests: a real hub, real workload clusters, and bin/manager as a process"
  go test -timeout 60m -count=1 ./test/e2e -v -ginkgo.v=${VERBOSE:-false} ${FOCUS:+-ginkgo.focus="$FOCUS"} \
    -ginkgo.json-report="$PWD/$reports/e2e.json"
fi
go run ./hack/slowest "$reports"/*.json
