#!/usr/bin/env bash
# Measures. First the benchmarks of the packages, then the manager on real fleets of WORKLOADS clusters each.
set -euo pipefail
cd "$(dirname "$0")/.."
export MASTHEAD_CONTROLPLANE_BIN=${MASTHEAD_CONTROLPLANE_BIN:-$PWD/bin/controlplane}
export KUBEBUILDER_ASSETS=$MASTHEAD_CONTROLPLANE_BIN
if [[ ${ONLY:-} != fleet ]]; then
  mapfile -t packages < <(grep -rlE '^func Benchmark' --include='*_test.go' pkg | xargs -n1 dirname | sort -u | sed 's#^#./#')
  # All benchmarks of a package together take longer than go test allows by default.
  go test -run '^$' -bench . -benchmem -timeout 30m "${packages[@]}"
fi
table=$(mktemp)
trap 'rm -f "$table"' EXIT
go -C test build -o ../bin/bench-fleet ./bench/fleet
for n in ${WORKLOADS:-2 10}; do
  bin/bench-fleet --workloads "$n" >>"$table"
done
echo "| clusters | memory | goroutines | label to first reconcile: median (range) | claim to Secret: median (range) |"
echo "|---|---|---|---|---|"
cat "$table"
