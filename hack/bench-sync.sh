#!/usr/bin/env bash
# Measures how Masthead and kube-bind's konnector carry claims on the same API servers. Arguments are passed to
# test/bench/sync (--help lists them). PEER=none leaves kube-bind out.
set -euo pipefail
cd "$(dirname "$0")/.."
export MASTHEAD_CONTROLPLANE_BIN=${MASTHEAD_CONTROLPLANE_BIN:-$PWD/bin/controlplane}
export KUBEBUILDER_ASSETS=$MASTHEAD_CONTROLPLANE_BIN
export GOWORK=off
bin=$PWD/bin/peers
peer=()
if [[ ${PEER:-} != none ]]; then
  # go.mod and go.sum there pin kube-bind; its own go.mod pins its dependencies.
  (cd test/bench/sync/kubebind && go mod download github.com/kube-bind/kube-bind)
  source=$(cd test/bench/sync/kubebind && go list -m -f '{{.Dir}}' github.com/kube-bind/kube-bind)
  name=konnector-$(cd test/bench/sync/kubebind && go list -m -f '{{.Version}}' github.com/kube-bind/kube-bind)
  mkdir -p "$bin"
  if [[ ! -x $bin/$name || ! -x $bin/$name-lifted ]]; then
    echo "building $name, as shipped and with the limits of its clients lifted (some minutes the first time)" >&2
    copy=$(mktemp -d)
    trap 'rm -rf "$copy"' EXIT
    cp -r "$source/." "$copy"
    chmod -R u+w "$copy"
    (cd "$copy" && go build -mod=readonly -o "$bin/$name" ./cmd/konnector)
    # The konnector has no flag for the limits. One line is added to each of its two client configurations, one for each
    # side.
    sed -i 's|^\tconfig.ClientConfig = rest.AddUserAgent(.*|&\n\tconfig.ClientConfig.QPS = -1|' "$copy/pkg/konnector/config.go"
    sed -i 's|^\t// create new because there is none yet for this kubeconfig|\tproviderConfig.QPS = -1\n&|' "$copy/pkg/konnector/konnector_reconcile.go"
    for file in config.go konnector_reconcile.go; do
      [[ $(grep -c 'QPS = -1' "$copy/pkg/konnector/$file") == 1 ]] || { echo "bench-sync: cannot lift the limits in $file" >&2; exit 1; }
    done
    (cd "$copy" && go build -mod=readonly -o "$bin/$name-lifted" ./cmd/konnector)
  fi
  peer=(--konnector "$bin/$name" --konnector-lifted "$bin/$name-lifted" --kube-bind-crds "$source/deploy/crd")
fi
go -C test build -o ../bin/bench-sync ./bench/sync
bin/bench-sync "${peer[@]}" "$@"
