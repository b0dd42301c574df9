#!/usr/bin/env bash
# Runs the tests: `test.sh` all, `test.sh unit` without the fleet, `test.sh e2e` with the fleet only. `test.sh beside` is
# what the first has run beside the fleet.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-all}
export MASTHEAD_CONTROLPLANE_BIN=${MASTHEAD_CONTROLPLANE_BIN:-$PWD/bin/controlplane}
export KUBEBUILDER_ASSETS=$MASTHEAD_CONTROLPLANE_BIN
# For a busy machine; envtest allows 20 seconds each.
export KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=2m KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT=2m
# Two fifths of the processor time of the tests is that of API servers and etcd, and a part of theirs is the collection
# of garbage. An API server grows to some 600 MB with this, to some 400 MB with GOGC=100, and a dozen run at a time.
export GOGC=${GOGC:-400}
reports=$PWD/bin/test
# as_built COMMAND: with the flags of bin/manager, so that what both are made of is compiled once. Only the race
# detector wants another.
as_built() { CGO_ENABLED=0 GOFLAGS="-trimpath $(go env GOFLAGS)" "$@"; }
# What an interrupt ends says so by its status, of which the script would think no more than of a test that failed.
trap 'exit 130' INT
[[ $what == beside ]] || rm -rf "$reports"
mkdir -p "$reports"

# Without the race detector run the packages that start no goroutine of ours: what is under test there is an API
# server, a policy, a program or a page. So do tests of other packages that are one long sequence or one long answer;
# what they share with other goroutines is in shorter tests of the same packages. The detector made them take two to
# ten times as long.
unraced='(apis|hack)/|/(pkg/takeover|test/(charts|docs|monitoring|printed|providercrds|takeover))$'
long_packages=(pkg/controllers/importer pkg/kindwatch pkg/providers/connection)
long_tests='^(TestImportSurvivesKills|TestRestoredImport|TestNothingIsMadeWhileItMustNot|TestHonestGiants|TestHonestGiantsAreRead|TestEndlessAnswersEnd)$'
# Of the attacks of hostile API servers, those that are an answer of many megabytes.
long_tests+='|^TestHostileServers$/^(enormous-.*|white-space|endless-(array|list|pages|writes)|empty-(elements|pages)|same-page)$'

# Of packages on standard input, those that take longest come first: what starts last should not be waited for alone.
longest_first() {
  local first=(pkg/controllers/{importer,agent} pkg/kindwatch pkg/controllers/application pkg/providers/connection
    pkg/controllers/{discovery,references} pkg/multicluster test/localfleet)
  printf "github.com/masthead-dev/masthead/%s\n" "${first[@]}"
  grep -vE "/($(IFS='|' && echo "${first[*]}"))$"
}

# packages REPORT ARGUMENT...: runs `go test` with these arguments. Packages run three at a time, on two cores too: most
# of what they do is wait for API servers, which some start for themselves. Four packages beside the fleet had 19 API
# servers at a time; on a machine of half the speed, those that were starting gave up.
# Vet is part of `make lint`; with each package tested here it would look through all that this depends on.
packages() {
  local report=$1
  shift
  "$gotestsum" --format=pkgname-and-test-fails --jsonfile="$reports/$report.json" -- -vet=off -p 3 -timeout 40m "$@"
}

unit() {
  echo "== unit and integration tests (the first run compiles everything twice: allow some minutes)"
  local all raced plain gotestsum
  mapfile -t all < <(go list ./... | grep -v '/test/e2e$')
  mapfile -t raced < <(printf "%s\n" "${all[@]}" | grep -vE "$unraced" | longest_first)
  mapfile -t plain < <(printf "%s\n" "${all[@]}" | grep -E "$unraced")
  gotestsum=$(hack/tool.sh gotestsum)
  # For test/charts and test/printed, which would wait for the compiler.
  hack/tool.sh helm >/dev/null
  hack/tool.sh gojq >/dev/null
  echo "== with the race detector"
  # A program with the detector sleeps for a second before it ends, unless it is told not to. With the detector the
  # compiler also adds checks of unsafe pointers, which only dependencies have: a fifth of the processor time of the
  # importer's tests.
  local failed=
  GORACE=atexit_sleep_ms=0 packages raced -race -gcflags=all=-d=checkptr=0 -skip "$long_tests" "${raced[@]}" || failed=yes
  echo "== without it: see hack/test.sh for what and why"
  as_built packages long -run "$long_tests" "${long_packages[@]/#/./}" || failed=yes
  as_built packages plain "${plain[@]}" || failed=yes
  [[ -z $failed ]] || exit 1
  (cd hack/release && as_built go test ./...)
  (cd hack/tools/monitoring && as_built go test ./...)
  # The managed resources of the importer in the typed structs of the AWS provider: a module of its own, which
  # compiles for minutes once. Vet would look through all of these structs, too.
  (cd test/providertypes && as_built go test -vet=off ./...)
}

# What is tested end to end is what is released: the manager out of the image.
prepare_e2e() {
  local platform
  platform=linux/$(go env GOARCH)
  echo "== a release for $platform, and the manager unpacked from its image"
  VERSION=$(awk '/^## [0-9]/ {print "v" $2; exit}' CHANGELOG.md) PLATFORMS=$platform DIST=$PWD/bin/dist \
    KUBECTL=$MASTHEAD_CONTROLPLANE_BIN/kubectl hack/release.sh
  rm -rf bin/image
  bin/tools/release unpack --image=bin/dist/masthead.tar --platform="$platform" --out=bin/image
  export MASTHEAD_MANAGER_BIN=${MASTHEAD_MANAGER_BIN:-$PWD/bin/image/manager}
  # Apart from export, which would hide that one cannot be had.
  MASTHEAD_PROMETHEUS_BIN=${MASTHEAD_PROMETHEUS_BIN:-$(hack/prometheus.sh prometheus)}
  MASTHEAD_PROMTOOL_BIN=${MASTHEAD_PROMTOOL_BIN:-$(hack/prometheus.sh promtool)}
  export MASTHEAD_PROMETHEUS_BIN MASTHEAD_PROMTOOL_BIN
  as_built go test -c -o "$reports/e2e.test" ./test/e2e
}

# A program, and not `go test`, which would not pass on the signal that ends it.
e2e() {
  cd test/e2e
  MASTHEAD_E2E_FLEET='' exec "$reports/e2e.test" -test.timeout 60m -test.v -ginkgo.v="${VERBOSE:-false}" ${FOCUS:+-ginkgo.focus="$FOCUS"} \
    -ginkgo.json-report="$reports/e2e.json"
}

# The end-to-end tests wait for half of their time, and the other tests run then: at a lower priority, because three
# packages beside a fleet are more than two cores can do at once, and specs ran into their patience when all had the
# same. At the lowest priority it is the other tests that did: while the fleet was at work, they got a hundredth of the
# processor. Now they get a tenth. What the specs print is shown after the rest.
all() {
  prepare_e2e
  echo "== end-to-end tests begin beside the others, see $reports/e2e.log"
  (e2e) >"$reports/e2e.log" 2>&1 &
  local fleet=$! failed=
  # shellcheck disable=SC2064 # The process of now.
  trap "kill $fleet 2>/dev/null; wait $fleet" EXIT
  nice -n 10 hack/test.sh beside || failed=yes
  echo "== end-to-end tests: a real hub, real workload clusters, and bin/manager as a process"
  wait "$fleet" || failed=yes
  trap - EXIT
  cat "$reports/e2e.log"
  [[ -z $failed ]]
}

case $what in
unit) unit ;;
beside)
  unit
  exit
  ;;
e2e)
  prepare_e2e
  echo "== end-to-end tests: a real hub, real workload clusters, and bin/manager as a process"
  (e2e)
  ;;
*) all ;;
esac
as_built go run ./hack/slowest "$reports"/*.json
