#!/usr/bin/env bash
# Builds the image of the manager without a container engine: dist/masthead.tar, an OCI image layout for amd64 and
# arm64. The same commit gives the same digest, which is printed at the end.
#   PLATFORMS="linux/amd64"  only these      VERSION=v1.2.3  what the manager and the tag say      IMAGE=registry/name
set -euo pipefail
cd "$(dirname "$0")/.."
platforms=${PLATFORMS:-linux/amd64 linux/arm64}
version=${VERSION:-$(git describe --tags --always --dirty)}
image=${IMAGE:-masthead}:$version
dist=${DIST:-dist}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH GOWORK=off CGO_ENABLED=0

release=$PWD/bin/tools/release
mkdir -p bin/tools "$dist"
(cd hack/release && go build -trimpath -o "$release" .)

flags=()
for platform in $platforms; do
  binary=$dist/bin/${platform//\//-}/manager
  echo "== manager for $platform" >&2
  # Without VCS stamping: the version already shows whether the tree is clean, and a build outside of git gives the same
  # bytes.
  GOOS=${platform%/*} GOARCH=${platform#*/} go build -trimpath -buildvcs=false \
    -ldflags "-s -w -buildid= -X github.com/masthead-dev/masthead/internal/version.Version=$version" -o "$binary" ./cmd/manager
  flags+=("--binary=$platform=$binary")
done
echo "== licences of all modules that are linked" >&2
"$release" licenses "${flags[@]}" --out="$dist/licenses"
echo "== image $image" >&2
digest=$("$release" image "${flags[@]}" --licenses="$dist/licenses" --name="$image" --version="$version" \
  --revision="$(git rev-parse HEAD)" --out="$dist/masthead.tar")
echo "$digest" >"$dist/masthead.digest"
echo "$dist/masthead.tar $image@$digest"
