#!/usr/bin/env bash
# Runs the tests: `test.sh` all, `test.sh unit` without the fleets, `test.sh e2e` with the fleets only. `test.sh beside`
# is what the first has run beside the fleets.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-all}
export MASTHEAD_CONTROLPLANE_BIN=${MASTHEAD_CONTROLPLANE_BIN:-$PWD/bin/controlplane}
export KUBEBUILDER_ASSETS=$MASTHEAD_CONTROLPLANE_BIN
# How long the agent is walked through orders of events, of one processor; a million steps are enough before that.
export MASTHEAD_EXPLORE_MINUTES=${MASTHEAD_EXPLORE_MINUTES:-10}
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
unraced='(apis|hack)/|/(pkg/takeover|test/(charts|docs|explore|monitoring|printed|providercrds|takeover))$'
# Nor do those that check pure functions in every situation.
unraced+='|/pkg/(controllers/(agent/plan|application/appstatus)|providers/connection/lifecycle)$'
long_packages=(pkg/controllers/importer pkg/kindwatch pkg/providers/connection)
long_tests='^(TestImportSurvivesKills|TestRestoredImport|TestNothingIsMadeWhileItMustNot|TestHonestGiants|TestHonestGiantsAreRead|TestEndlessAnswersEnd'
long_tests+='|TestClusterThatRefersToRealInfrastructureIsNotDeleted|TestLayouts)$'
# Of the attacks of hostile API servers, those that are an answer of many megabytes.
long_tests+='|^TestHostileServers$/^(enormous-.*|white-space|endless-(array|list|pages|writes)|empty-(elements|pages)|same-page)$'

# Of packages on standard input, those that take longest come first: what starts last should not be waited for alone.
longest_first() {
  local first=(pkg/controllers/{importer,agent,application} pkg/providers/connection pkg/kindwatch
    pkg/controllers/{discovery,references})
  printf "github.com/masthead-dev/masthead/%s\n" "${first[@]}"
  grep -vE "/($(IFS='|' && echo "${first[*]}"))$"
}

# packages REPORT AT_ONCE ARGUMENT...: runs `go test` with these arguments, and so many packages at a time. In all there
# are three, on two cores too: most of what they do is wait for API servers, which some start for themselves. Four
# packages beside a fleet had 19 API servers at a time; on a machine of half the speed, those that were starting gave
# up. Vet is part of `make lint`; with each package tested here it would look through all that this depends on.
packages() {
  local report=$1 at_once=$2
  shift 2
  "$gotestsum" --format=pkgname-and-test-fails --jsonfile="$reports/$report.json" -- -vet=off -p "$at_once" -timeout 40m "$@"
}

# raced REPORT AT_ONCE PACKAGE...: the same with the race detector. A program with the detector sleeps for a second
# before it ends, unless an option says otherwise. With the detector the compiler also adds checks of unsafe pointers, which
# only dependencies have: a fifth of the processor time of the importer's tests.
raced() {
  local report=$1 at_once=$2
  shift 2
  GORACE=atexit_sleep_ms=0 packages "$report" "$at_once" -race -gcflags=all=-d=checkptr=0 -skip "$long_tests" "$@"
}

# of_pkg PACKAGE...: these packages with the race detector, two at a time, then their long tests without it, and then
# the packages of module test with it. It runs as a job, which does not inherit the trap.
of_pkg() {
  local failed=
  trap 'exit 130' INT
  raced inside 2 "$@" || failed=yes
  as_built packages long 2 -run "$long_tests" "${long_packages[@]/#/./}" || failed=yes
  (cd test && raced fleets-raced 1 "${fleets_raced[@]}") || failed=yes
  [[ -z $failed ]]
}

# The packages of pkg run two at a time, and beside them all others but those of module test that want the race
# detector, one after the other; both take about as long. One group after the other would leave a processor idle while
# the last package of each group runs.
unit() {
  echo "== unit and integration tests (the first run compiles everything twice: allow some minutes)"
  local all inside outside plain fleets_plain fleets_raced gotestsum failed=
  mapfile -t all < <(go list ./...)
  mapfile -t inside < <(printf "%s\n" "${all[@]}" | grep -vE "$unraced" | grep '/masthead/pkg/' | longest_first)
  mapfile -t outside < <(printf "%s\n" "${all[@]}" | grep -vE "$unraced" | grep -v '/masthead/pkg/')
  mapfile -t plain < <(printf "%s\n" "${all[@]}" | grep -E "$unraced")
  mapfile -t fleets_plain < <(go -C test list ./... | grep -E "$unraced")
  mapfile -t fleets_raced < <(go -C test list ./... | grep -vE "$unraced|/test/e2e$")
  gotestsum=$(hack/tool.sh gotestsum)
  # For test/charts, test/printed and the verdicts of tools, which would wait for the compiler.
  for tool in helm gojq glua; do hack/tool.sh $tool >/dev/null; done
  # As a process group, which is ended as a whole. Otherwise an interrupt would end the shell only.
  set -m
  of_pkg "${inside[@]}" &
  local beside=$!
  set +m
  # shellcheck disable=SC2064 # The process of now.
  trap "kill -INT -- -$beside 2>/dev/null; wait $beside" EXIT
  # Without the race detector: see the top of this file for what and why.
  as_built packages plain 1 "${plain[@]}" || failed=yes
  (cd test && as_built packages fleets-plain 1 "${fleets_plain[@]}") || failed=yes
  raced outside 1 "${outside[@]}" || failed=yes
  modules || failed=yes
  wait "$beside" || failed=yes
  trap - EXIT
  [[ -z $failed ]] || exit 1
}

# modules tests the smaller modules. The managed resources of the importer are in the typed structs of the AWS
# provider, which compile for minutes once; vet would look through all of these, too.
modules() {
  (cd hack/release && as_built go test ./...) &&
    (cd hack/controlplane/kubernetes && as_built go test ./kwok) &&
    (cd hack/tools/monitoring && as_built go test ./...) &&
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
  as_built go -C test test -c -o "$reports/e2e.test" ./e2e
}

# specs REPORT ARGUMENT...: end-to-end specs in a fleet of their own. It ends by running a program, not `go test`, which
# would not pass on the signal that ends it.
specs() {
  local report=$1
  shift
  cd test/e2e
  MASTHEAD_E2E_FLEET='' exec "$reports/e2e.test" -test.timeout 60m -test.v -ginkgo.v="${VERBOSE:-false}" \
    -ginkgo.json-report="$reports/$report.json" "$@"
}

fleets=()
# begin_e2e runs the specs in two fleets side by side: they wait for more than half of their time.
begin_e2e() {
  echo "== end-to-end tests begin in two fleets, see $reports/e2e.log and $reports/e2e-second.log"
  (specs e2e -ginkgo.label-filter='!second-fleet') >"$reports/e2e.log" 2>&1 &
  fleets+=($!)
  (MASTHEAD_E2E_DIR=${MASTHEAD_E2E_DIR:+$MASTHEAD_E2E_DIR-second} specs e2e-second -ginkgo.label-filter=second-fleet) >"$reports/e2e-second.log" 2>&1 &
  fleets+=($!)
  trap 'kill "${fleets[@]}" 2>/dev/null; wait "${fleets[@]}"' EXIT
}

# end_e2e waits for both, and shows what they print. It fails if one of them does, and shows that one last: those who
# read only the end of a long output want to know the reason.
end_e2e() {
  local first=0 second=0 logs=("$reports/e2e.log" "$reports/e2e-second.log")
  echo "== end-to-end tests: a real hub, real workload clusters, and bin/manager as a process"
  wait "${fleets[0]}" || first=$?
  wait "${fleets[1]}" || second=$?
  trap - EXIT
  ((first == 0)) || logs=("${logs[1]}" "${logs[0]}")
  cat "${logs[@]}"
  ((first == 0 && second == 0))
}

# The other tests run while the specs wait: at a lower priority, because three packages beside fleets are more than two
# cores can do at once, and specs ran into their patience when all had the same. At the lowest priority it is the other
# tests that did: while a fleet was at work, they got a hundredth of the processor. Now they get a tenth.
all() {
  local failed=
  prepare_e2e
  begin_e2e
  nice -n 10 hack/test.sh beside || failed=yes
  end_e2e || failed=yes
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
  if [[ -n ${FOCUS:-} ]]; then
    (specs e2e -ginkgo.focus="$FOCUS")
  else
    begin_e2e
    end_e2e
  fi
  ;;
*) all ;;
esac
if [[ $what != e2e ]]; then
  echo "== the slowest tests"
  cat "$reports"/{inside,long,plain,outside,fleets-plain,fleets-raced}.json | "$(hack/tool.sh gotestsum)" tool slowest --num 10
fi
