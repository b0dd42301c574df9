#!/usr/bin/env bash
# Copyright The Masthead Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Builds the programs that test/localfleet starts as processes, from source, into bin/controlplane (or the folder given
# as the first argument): etcd, kube-apiserver, kube-controller-manager, kubectl, crossplane, cluster-api, kwok, and our
# own composition function. It needs Go and a Go module proxy, nothing else: no container images, no release archives.
#
# The versions are those that the go.mod files in hack/controlplane pin. A binary that already exists for that version,
# this Go release and these flags (recorded in the stamp file beside it) is not built again; our own function is always
# passed to `go build`, which takes a second when nothing has changed.

set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
out="${1:-${root}/bin/controlplane}"
mkdir -p "${out}/.stamps"
out="$(cd "${out}" && pwd)"
pins="${root}/hack/controlplane"

# Static binaries without the paths of the machine that built them. VCS stamping would make every commit of this
# repository relink binaries that do not depend on it.
export CGO_ENABLED=0
export GOFLAGS="-trimpath -buildvcs=false"
export GOWORK=off
heartbeat="${MASTHEAD_BUILD_HEARTBEAT:-15}"

say() { printf '%s\n' "$*" >&2; }
die() { say "build-controlplane: $*"; exit 1; }

command -v go >/dev/null || die "cannot find the go command; install the Go release that go.mod names"

# Two builds at once (make in two terminals) would only compete for CPU time.
exec 9>"${out}/.lock"
if command -v flock >/dev/null && ! flock -n 9; then
  say "Another build into ${out} is running; waiting for it."
  flock 9
fi

platform="$(go env GOVERSION GOOS GOARCH | paste -sd' ')"

# version MODULE GOMOD: the version that GOMOD requires of MODULE.
version() {
  local found
  found="$(awk -v module="$1" '
    $1 == "require" && $2 == module { print $3; exit }
    $1 == module && $2 ~ /^v/       { print $2; exit }' "$2")"
  [ -n "${found}" ] || die "cannot find a version of $1 in ${2#"${root}"/}"
  printf '%s' "${found}"
}

kubernetes="$(version k8s.io/kubernetes "${pins}/kubernetes/go.mod")"
etcd="$(version go.etcd.io/etcd/server/v3 "${pins}/kubernetes/go.mod")"
crossplane="$(version github.com/crossplane/crossplane/v2 "${pins}/controllers/go.mod")"
clusterapi="$(version sigs.k8s.io/cluster-api "${pins}/controllers/go.mod")"
kwok="$(version sigs.k8s.io/kwok "${pins}/kubernetes/go.mod")"

# Without these, an API server reports the version v0.0.0-master, and clients that check the version misbehave.
minor="${kubernetes#v*.}"
kubernetes_version=""
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  kubernetes_version+=" -X ${package}.gitVersion=${kubernetes} -X ${package}.gitTreeState=clean"
  kubernetes_version+=" -X ${package}.gitMajor=1 -X ${package}.gitMinor=${minor%%.*}"
done

# binary | folder with the go.mod | main package | version | extra linker flags
targets=(
  "etcd|${pins}/kubernetes|go.etcd.io/etcd/server/v3|${etcd}|"
  "kube-apiserver|${pins}/kubernetes|k8s.io/kubernetes/cmd/kube-apiserver|${kubernetes}|${kubernetes_version}"
  "kube-controller-manager|${pins}/kubernetes|k8s.io/kubernetes/cmd/kube-controller-manager|${kubernetes}|${kubernetes_version}"
  "kubectl|${pins}/kubernetes|k8s.io/kubernetes/cmd/kubectl|${kubernetes}|${kubernetes_version}"
  "crossplane|${pins}/controllers|github.com/crossplane/crossplane/v2/cmd/crossplane|${crossplane}|-X github.com/crossplane/crossplane-runtime/v2/pkg/version.version=${crossplane}"
  "cluster-api|${pins}/controllers|sigs.k8s.io/cluster-api/core|${clusterapi}|-X sigs.k8s.io/cluster-api/version.gitVersion=${clusterapi}"
  "kwok|${pins}/kubernetes|./kwok|${kwok}|"
)

# A main package of ours (kwok/main.go says why there is one) is built again when it has changed, too.
stamp() {
  printf '%s %s\n%s\n' "$1" "$2" "${platform} ${GOFLAGS} -s -w $3"
  [[ $1 != ./* ]] || cksum <"${pins}/kubernetes/$1/main.go"
}

wanted=()
for target in "${targets[@]}"; do
  IFS='|' read -r name _ package release ldflags <<<"${target}"
  if [ ! -x "${out}/${name}" ]; then
    why="it is not there yet"
  elif [ ! -f "${out}/.stamps/${name}" ]; then
    why="it is not known which version it is"
  elif [ "$(cat "${out}/.stamps/${name}")" != "$(stamp "${package}" "${release}" "${ldflags}")" ]; then
    why="it was built as $(head -n 1 "${out}/.stamps/${name}" | awk '{print $2}') or with another Go release or other flags"
  else
    continue
  fi
  wanted+=("${target}|${why}")
done

builder=""
cleanup() {
  [ -z "${builder}" ] || kill "${builder}" 2>/dev/null || true
  rm -f "${out}"/.building.*
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

clock() { printf '%dm%02ds' $(($1 / 60)) $(($1 % 60)); }

# build NAME DIRECTORY PACKAGE LDFLAGS: `go build -v` prints each package when it is compiled. The progress shown is
# the number of these packages and of the downloaded modules.
build() {
  local name="$1" directory="$2" package="$3" ldflags="$4"
  local log="${out}/.building.${name}.log" binary="${out}/.building.${name}" begun=${SECONDS} shown=${SECONDS} status=0
  (cd "${directory}" && exec go build -v -o "${binary}" -ldflags "-s -w ${ldflags}" "${package}") >"${log}" 2>&1 9>&- &
  builder=$!
  while kill -0 "${builder}" 2>/dev/null; do
    sleep 0.5
    if [ $((SECONDS - shown)) -ge "${heartbeat}" ]; then
      shown=${SECONDS}
      say "        $(clock $((SECONDS - begun)))  ${name}: $(grep -c '^go: downloading' "${log}" || true) modules downloaded," \
        "$(grep -vc '^go: ' "${log}" || true) packages compiled"
    fi
  done
  wait "${builder}" || status=$?
  builder=""
  if [ "${status}" -ne 0 ]; then
    grep '^go: downloading' -v "${log}" | tail -n 30 >&2
    die "cannot build ${name} (${package}): go build ended with status ${status}"
  fi
  # Renamed, not overwritten: a fleet that runs the old binary keeps it.
  mv -f "${binary}" "${out}/${name}"
  say "        $(clock $((SECONDS - begun)))  ${name}: done ($(grep -vc '^go: ' "${log}" || true) packages compiled, $(($(stat -c %s "${out}/${name}") / 1048576)) MB)"
  rm -f "${log}"
}

if [ "${#wanted[@]}" -gt 0 ]; then
  say "Building ${#wanted[@]} of ${#targets[@]} control-plane programs into ${out#"${root}"/}."
  say "They are compiled from source, because the fleet for demo and tests is made of the real servers. With an empty Go build cache"
  say "this takes a quarter of an hour or more on two cores, once per version; later builds come from the cache in seconds."
fi
number=0
for target in "${wanted[@]}"; do
  IFS='|' read -r name directory package release ldflags why <<<"${target}"
  number=$((number + 1))
  say "[${number}/${#wanted[@]}] ${name} ${release}: ${why}"
  build "${name}" "${directory}" "${package}" "${ldflags}"
  stamp "${package}" "${release}" "${ldflags}" >"${out}/.stamps/${name}"
done

# Ours, so it has no version: go build decides whether there is something to do.
(cd "${root}/test" && go build -o "${out}/.building.localfleet-function" -ldflags "-s -w" ./localfleet/cmd/function) 9>&- ||
  die "cannot build localfleet-function"
if cmp -s "${out}/.building.localfleet-function" "${out}/localfleet-function"; then
  rm -f "${out}/.building.localfleet-function"
else
  mv -f "${out}/.building.localfleet-function" "${out}/localfleet-function"
  say "localfleet-function: built"
fi

if [ "${#wanted[@]}" -gt 0 ]; then
  say "All ${#targets[@]} control-plane programs are in ${out#"${root}"/}; this took $(clock "${SECONDS}")."
fi
