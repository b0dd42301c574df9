#!/usr/bin/env bash
# Prints the path of a program of Prometheus: `prometheus.sh promtool`, which tests the alerts, and
# `prometheus.sh prometheus`, the server, which the end-to-end suite starts. It is the one that $PROMTOOL or $PROMETHEUS
# names, the one that is installed, or the one of Debian's package prometheus, which is unpacked into bin/tools and not
# installed, so that no server starts. They are not built, because that would compile the clients of a dozen clouds, for
# minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
name=${1:?which program: promtool or prometheus}
case $name in
promtool) named=${PROMTOOL:-} ;;
prometheus) named=${PROMETHEUS:-} ;;
*)
  echo "prometheus.sh: no program is called \"$name\"" >&2
  exit 2
  ;;
esac
if [[ -n $named ]]; then
  echo "$named"
  exit
fi
if command -v "$name"; then
  exit
fi
binary=$PWD/bin/tools/$name
if [[ ! -x $binary ]]; then
  if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
    echo "prometheus.sh: install $name, or name it by ${name^^}; on Debian and Ubuntu it is fetched from the package prometheus" >&2
    exit 1
  fi
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  if ! (cd "$folder" && apt-get download --quiet prometheus >&2); then
    echo "prometheus.sh: cannot download the package prometheus: run apt-get update, install $name, or name it by ${name^^}" >&2
    exit 1
  fi
  dpkg -x "$folder"/prometheus_*.deb "$folder/package"
  mkdir -p bin/tools
  install -m 0755 "$folder"/package/usr/bin/{prometheus,promtool} bin/tools
fi
echo "$binary"
