#!/usr/bin/env bash
# Builds a pinned tool into bin/tools, once per version, and prints its path: `tool.sh controller-gen`.
set -euo pipefail
cd "$(dirname "$0")/.."
name=${1:?which tool}
case $name in
  controller-gen) module=hack/tools package=sigs.k8s.io/controller-tools/cmd/controller-gen path=sigs.k8s.io/controller-tools ;;
  deadcode) module=hack/tools package=golang.org/x/tools/cmd/deadcode path=golang.org/x/tools ;;
  gojq) module=hack/tools package=github.com/itchyny/gojq/cmd/gojq path=github.com/itchyny/gojq ;;
  gotestsum) module=hack/tools package=gotest.tools/gotestsum path=gotest.tools/gotestsum ;;
  glua) module=hack/tools package=github.com/yuin/gopher-lua/cmd/glua path=github.com/yuin/gopher-lua ;;
  helm) module=hack/tools/helm package=helm.sh/helm/v4/cmd/helm path=helm.sh/helm/v4 ;;
  golangci-lint) module=hack/tools/golangci-lint package=github.com/golangci/golangci-lint/v2/cmd/golangci-lint path=github.com/golangci/golangci-lint/v2 ;;
  *) echo "tool.sh: no tool is called \"$name\"" >&2; exit 2 ;;
esac
version=$(cd "$module" && go list -m -f '{{.Version}}' "$path")
binary=$PWD/bin/tools/$name-$version
if [[ ! -x $binary ]]; then
  echo "building $name $version into bin/tools (once; some minutes with an empty cache)" >&2
  mkdir -p bin/tools
  # Without cgo, like bin/manager, so that packages that both use are compiled only once.
  (cd "$module" && CGO_ENABLED=0 go build -trimpath -o "$binary" "$package")
fi
echo "$binary"
