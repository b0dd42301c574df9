#!/usr/bin/env bash
# Makes everything that a release publishes, into dist/: the image, install.yaml and the Helm charts with that image,
# the list of what is in it (SPDX), the licences, kubectl-masthead with its manifest for krew, and the notes from
# CHANGELOG.md. Nothing is pushed or tagged.
#   VERSION=v1.2.3  must have a section in CHANGELOG.md      IMAGE=registry/name
set -euo pipefail
cd "$(dirname "$0")/.."
version=${VERSION:?"say which: make release VERSION=v1.2.3"}
image=${IMAGE:-masthead}
dist=${DIST:-dist}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || { echo "release: \"$version\" is not of the form v1.2.3" >&2; exit 2; }

# The notes first: a version without notes is not released.
notes=$(awk -v heading="## ${version#v}" 'index($0, "## ") == 1 {on = ($0 == heading || index($0, heading " ") == 1); next} on' CHANGELOG.md)
[[ -n ${notes//[[:space:]]/} ]] || { echo "release: CHANGELOG.md has no section \"## ${version#v}\"" >&2; exit 1; }
mkdir -p "$dist"
printf '%s\n' "$notes" >"$dist/notes.md"

VERSION=$version IMAGE=$image DIST=$dist hack/image.sh
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
for binary in "$dist"/bin/*/manager; do
  platform=$(basename "$(dirname "$binary")")
  echo "== what is in the manager for $platform (SPDX)" >&2
  bin/tools/release sbom --binary="$binary" --version="$version" --out="$dist/masthead-$platform.spdx.json"
done
echo "== install.yaml" >&2
digest=$(<"$dist/masthead.digest")
"${KUBECTL:-kubectl}" kustomize config/default | sed "s|image: masthead:dev\$|image: $image:$version@$digest|" >"$dist/install.yaml"
grep -q "image: $image:$version@$digest" "$dist/install.yaml" || { echo "release: config/default does not name the image masthead:dev" >&2; exit 1; }
echo "== charts" >&2
hack/package-charts.sh "$version" "$image" "$digest" "$dist"
echo "== plugin for kubectl" >&2
PLUGIN_PLATFORMS=${PLUGIN_PLATFORMS:-${PLATFORMS:-}} hack/package-plugin.sh "$version" "$dist"
(cd "$dist" && sha256sum masthead.tar install.yaml ./*"-${version#v}.tgz" ./*.spdx.json ./kubectl-masthead-"${version#v}"-*.tar.gz masthead-krew.yaml >SHA256SUMS)
ls -l "$dist"
