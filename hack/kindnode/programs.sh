#!/usr/bin/env bash
# Builds the programs of a node of kind, and kind itself, from source into bin/kindnode/programs: `programs.sh`, or
# `programs.sh kind` for one of them. The versions are those that the go.mod files beside this script pin; Kubernetes is
# that of bin/controlplane, with the same flags, so that what was compiled for it is not compiled again.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
out=$root/bin/kindnode/programs
only=${1:-}
mkdir -p "$out"
export CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false" GOWORK=off

kubernetes=$(cd hack/controlplane/kubernetes && go list -m -f '{{.Version}}' k8s.io/kubernetes)
containerd=$(cd hack/kindnode/containerd && go list -m -f '{{.Version}}' github.com/containerd/containerd/v2)
minor=${kubernetes#v*.}
kubernetes_version=
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  kubernetes_version+=" -X $package.gitVersion=$kubernetes -X $package.gitTreeState=clean -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*}"
done

# build NAME FOLDER PACKAGE LDFLAGS TAGS
build() {
  [[ -z $only || $only == "$1" ]] || return 0
  local begun=$SECONDS
  (cd "$root/$2" && go build -tags "${5:-}" -ldflags "-s -w ${4:-}" -o "$out/$1" "$3")
  echo "$1: $((SECONDS - begun)) s" >&2
}

build kind hack/kindnode/kind sigs.k8s.io/kind
for name in kubeadm kubelet kube-scheduler kube-proxy; do
  build $name hack/controlplane/kubernetes k8s.io/kubernetes/cmd/$name "$kubernetes_version"
done
for name in containerd ctr containerd-shim-runc-v2; do
  build $name hack/kindnode/containerd github.com/containerd/containerd/v2/cmd/$name \
    "-X github.com/containerd/containerd/v2/version.Version=$containerd" "no_aufs no_zfs no_btrfs no_devmapper"
done
for plugin in main/ptp main/loopback ipam/host-local meta/portmap; do
  build "${plugin#*/}" hack/kindnode/cni github.com/containernetworking/plugins/plugins/$plugin
done
build coredns hack/kindnode/coredns github.com/coredns/coredns
