#!/usr/bin/env bash
# Packages the Helm charts for a release, with the image that they should run. Two runs give the same bytes.
#   package-charts.sh VERSION IMAGE DIGEST FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?version} image=${2:?image} digest=${3:?digest} out=${4:?folder}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
for chart in charts/*/; do
  name=$(basename "$chart")
  cp -r "$chart" "$work/$name"
  sed -i -e "s|^version: .*|version: ${version#v}|" -e "s|^appVersion: .*|appVersion: $version|" "$work/$name/Chart.yaml"
  if [[ $name == masthead ]]; then
    sed -i -e "s|^  repository: masthead\$|  repository: $image|" -e "s|^  digest: \"\"\$|  digest: $digest|" "$work/$name/values.yaml"
    grep -q "^  digest: $digest\$" "$work/$name/values.yaml" && grep -q "^  repository: $image\$" "$work/$name/values.yaml" ||
      { echo "package-charts: charts/masthead/values.yaml does not name the image masthead" >&2; exit 1; }
  fi
  tar --create --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+rw,go=rX \
    --directory "$work" "$name" | gzip --no-name >"$out/$name-${version#v}.tgz"
done
