#!/usr/bin/env bash
# Builds kubectl-masthead and packages it for each platform, with its licences, the file for kubectl's completion, and
# the manifest for krew that names the archives and their digests. Two runs give the same bytes.
#   package-plugin.sh VERSION FOLDER      PLUGIN_PLATFORMS="linux/amd64"  only these
#   PLUGIN_URL=https://...  where the archives will be
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?version} out=${2:?folder}
platforms=${PLUGIN_PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64}
url=${PLUGIN_URL:-https://github.com/masthead-dev/masthead/releases/download/$version}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH GOWORK=off CGO_ENABLED=0
release=$PWD/bin/tools/release
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
[[ -x $release ]] || { mkdir -p bin/tools && (cd hack/release && go build -trimpath -o "$release" .); }

manifest=$out/masthead-krew.yaml
sed "s|VERSION|$version|" hack/plugin/krew-head.yaml >"$manifest"
for platform in $platforms; do
  os=${platform%/*} arch=${platform#*/}
  binary=kubectl-masthead
  [[ $os == windows ]] && binary+=.exe
  echo "== kubectl-masthead for $platform" >&2
  folder=$work/$os-$arch
  mkdir "$folder"
  GOOS=$os GOARCH=$arch go build -trimpath -buildvcs=false \
    -ldflags "-s -w -buildid= -X github.com/masthead-dev/masthead/internal/version.Version=$version" -o "$folder/$binary" ./cmd/kubectl-masthead
  "$release" licenses --binary="$platform=$folder/$binary" --out="$folder/licenses"
  cp LICENSE "$folder/"
  [[ $os == windows ]] || cp hack/plugin/kubectl_complete-masthead "$folder/"
  archive=kubectl-masthead-${version#v}-$os-$arch.tar.gz
  tar --create --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+rw,go=rX \
    --directory "$folder" . | gzip --no-name >"$out/$archive"
  rm -r "$folder"
  digest=$(sha256sum "$out/$archive" | cut -d' ' -f1)
  cat >>"$manifest" <<END
  - selector:
      matchLabels:
        os: $os
        arch: $arch
    uri: $url/$archive
    sha256: $digest
    bin: $binary
END
done
