#!/usr/bin/env bash
# Stops a program that a demo started, if it still runs: `demo-stop.sh DIR manager|fakecloud`.
set -euo pipefail
file=${1:?the folder of the fleet}/${2:?the program}.pid
[[ -f $file ]] || exit 0
read -r pid start <"$file"
if [[ $(awk '{print $22}' "/proc/$pid/stat" 2>/dev/null) == "$start" ]]; then
  kill "$pid"
  for _ in $(seq 150); do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.2
  done
fi
rm -f "$file"
