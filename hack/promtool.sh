#!/usr/bin/env bash
# Prints the path of promtool, which tests the alerts: $PROMTOOL, the one that is installed, or the one of Debian's package prometheus, which
# is unpacked into bin/tools and not installed, so that no server starts. Building it compiles the clients of a dozen clouds, for minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ -n ${PROMTOOL:-} ]]; then
  echo "$PROMTOOL"
  exit
fi
if command -v promtool; then
  exit
fi
binary=$PWD/bin/tools/promtool
if [[ ! -x $binary ]]; then
  if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
    echo "promtool.sh: install promtool, or name it by PROMTOOL; on Debian and Ubuntu it is fetched from the package prometheus" >&2
    exit 1
  fi
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  if ! (cd "$folder" && apt-get download --quiet prometheus >&2); then
    echo "promtool.sh: cannot download the package prometheus: run apt-get update, install promtool, or name it by PROMTOOL" >&2
    exit 1
  fi
  dpkg -x "$folder"/prometheus_*.deb "$folder/package"
  mkdir -p bin/tools
  install -m 0755 "$folder/package/usr/bin/promtool" "$binary"
fi
echo "$binary"
