#!/usr/bin/env bash
# Builds the images that test/kindfleet runs in clusters, as files that kind loads, into bin/kindnode/archives:
# Crossplane core, Cluster API core and the composition function of the local fleet, from bin/controlplane; stand-ins
# for the images of the sample applications; and the manager's image as it is released. It needs no engine.
#   VERSION=v1.2.3  that of the manager, else that of the newest section of CHANGELOG.md
set -euo pipefail
cd "$(dirname "$0")/../.."
. hack/kindnode/archive.sh
controlplane=${MASTHEAD_CONTROLPLANE_BIN:-$PWD/bin/controlplane}
out=$PWD/bin/kindnode/archives
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for name in crossplane cluster-api localfleet-function; do
  mkdir -p "$work/$name/tmp"
  install -m 0755 "$controlplane/$name" "$work/$name/"
  archive "masthead.test/$name:built" "$work/$name" "$out/$name.tar" "{\"User\":\"65532:65532\",\"Entrypoint\":[\"/$name\"],\"Env\":[\"PATH=/\"]}"
done

mkdir -p "$work/standin"/{bin,usr/sbin,tmp,var/lib/mysql,var/www/html}
CGO_ENABLED=0 go -C test build -trimpath -ldflags "-s -w" -o "$work/standin/bin/standin" ./kindfleet/standin
for name in mysqld apache2 sleep wget eat; do ln -s standin "$work/standin/bin/$name"; done
while read -r image program; do
  archive "docker.io/library/$image" "$work/standin" "$out/standin-${image%%:*}.tar" "{\"Entrypoint\":[$program],\"Env\":[\"PATH=/bin\"]}"
done <<'IMAGES'
mysql:5.6 "/bin/mysqld"
wordpress:4.8-apache "/bin/apache2"
busybox:1.36
IMAGES

VERSION=${VERSION:-$(awk '/^## [0-9]/ {print "v" $2; exit}' CHANGELOG.md)} IMAGE=masthead.test/masthead PLATFORMS=linux/$(go env GOARCH) \
  DIST=$PWD/bin/kindnode/dist hack/image.sh >&2
cp bin/kindnode/dist/masthead.tar "$out/masthead.tar"
