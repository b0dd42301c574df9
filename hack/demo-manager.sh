#!/usr/bin/env bash
# Runs bin/manager in the background against the hub of a local fleet, as its service account:
# `demo-manager.sh DIR [FLAG...]`. A manager that an earlier run left is replaced. Its pid is in DIR/manager.pid, its
# log in DIR/manager.log.
set -euo pipefail
cd "$(dirname "$0")/.."
fleet=${1:?the folder of the fleet}
shift

hack/demo-stop.sh "$fleet" manager

hack/manager-kubeconfig.sh "$fleet"

flags=(--kubeconfig "$fleet/manager.kubeconfig" --leader-elect=false
  --metrics-bind-address 127.0.0.1:18080 --metrics-secure=false
  --health-bind-address 127.0.0.1:18081
  --allow-loopback-endpoints "$@")
echo "\$ bin/manager ${flags[*]}"
setsid nohup bin/manager "${flags[@]}" >"$fleet/manager.log" 2>&1 </dev/null &
pid=$!
# The start time makes sure that a pid that was given to another program later is not mistaken for the manager.
echo "$pid $(awk '{print $22}' "/proc/$pid/stat")" >"$fleet/manager.pid"

ready() { # whether /readyz answers 200; bash speaks enough HTTP for that, so that curl is not needed
  { exec 3<>/dev/tcp/127.0.0.1/18081; } 2>/dev/null || return 1
  printf 'GET /readyz HTTP/1.0\r\n\r\n' >&3
  local status
  read -r status <&3
  exec 3>&-
  [[ $status == *" 200 "* ]]
}
deadline=$((SECONDS + 60))
until ready; do
  kill -0 "$pid" 2>/dev/null || { tail -n 20 "$fleet/manager.log" >&2; echo "demo: the manager has exited" >&2; exit 1; }
  ((SECONDS < deadline)) || { tail -n 20 "$fleet/manager.log" >&2; echo "demo: the manager does not become ready" >&2; exit 1; }
  sleep 0.2
done
echo "the manager is ready (pid $pid)"
