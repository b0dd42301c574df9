#!/usr/bin/env bash
# Runs a command with a container engine: `engine.sh COMMAND...`.
#
# If Docker answers (according to DOCKER_HOST and docker's contexts), the command runs with it, and the engine keeps
# running. Otherwise, for root, dockerd is started for the command and ended after it, with its own data root,
# bin/kindnode/docker. dockerd and the command run in their own namespaces for network, mounts and processes: dockerd's
# bridges, its iptables rules, its mounts and everything that runs in its containers end with it, however it ends. This
# script restores what is left on the machine: sysctls that have no namespace, control groups, and /lib/modules if
# Docker created it. The state before and after is compared, and a difference is an error.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(cd "$here/../.." && pwd)/bin/kindnode
say() { echo "engine: $*" >&2; }
# answers succeeds if Docker answers. It prints Docker's version, for callers that need it.
answers() { docker version --format '{{.Server.Version}}' 2>/dev/null; }

# Inside: everything that is started here ends with this shell, which is the first process of its namespace.
if [[ ${1:-} == --inside ]]; then
  shift
  mount -t tmpfs tmpfs /run
  ip link set lo up
  export DOCKER_HOST=unix:///run/docker.sock
  runtime=()
  # Docker requests all capabilities when a container is privileged; runc fails if no process here can have one of them.
  last=$(</proc/sys/kernel/cap_last_cap)
  if [[ $((16#$(awk '/^CapBnd/ {print $2}' /proc/self/status))) != "$(((1 << (last + 1)) - 1))" ]]; then
    runtime=(--add-runtime "bounded=$work/boundedrunc" --default-runtime bounded)
  fi
  # Its containerd uses the shim that is found first, which must not be the one of bin/kindnode.
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin dockerd --data-root "$work/docker" --exec-root /run/docker \
    --pidfile /run/docker.pid --host "$DOCKER_HOST" "${runtime[@]}" >"$work/dockerd.log" 2>&1 &
  daemon=$!
  for ((try = 0; try < 150; try++)); do
    if answers >/dev/null; then break; fi
    kill -0 $daemon 2>/dev/null || break
    sleep 0.2
  done
  if ! version=$(answers); then
    tail -n 20 "$work/dockerd.log" >&2
    say "dockerd does not answer; its log is $work/dockerd.log"
    exit 1
  fi
  say "dockerd $version runs for this command, with its data in $work/docker"
  status=0
  "$@" &
  trap 'kill -TERM $! 2>/dev/null || true' INT TERM
  wait $! || status=$?
  # dockerd ends by a signal, and not only with its namespace, so that its data stays intact.
  containers=$(docker ps --all --quiet)
  [[ -z $containers ]] || docker rm --force --volumes $containers >/dev/null
  kill $daemon
  wait $daemon || true
  exit $status
fi

(($#)) || {
  say "say what to run"
  exit 2
}
if ! command -v docker >/dev/null; then
  say "cannot find docker: install Docker (on Debian: apt-get install docker.io)"
  exit 1
fi
if version=$(answers); then
  say "Docker $version answers"
  exec "$@"
fi
why="Docker does not answer${DOCKER_HOST:+ at $DOCKER_HOST}: start it, or name it by DOCKER_HOST"
if [[ $(id -u) != 0 ]]; then
  say "$why. Only root can have one started for the time of a command"
  exit 1
fi
for program in dockerd containerd runc iptables ip unshare; do
  command -v $program >/dev/null || {
    say "$why. To have one started for the time of a command, $program is missing (on Debian: apt-get install docker.io iptables)"
    exit 1
  }
done
mkdir -p "$work"
exec 8>"$work/.engine"
flock --nonblock 8 || {
  say "another command has the engine of $work; only one can"
  exit 1
}
(cd "$here/../.." && CGO_ENABLED=0 go build -trimpath -o "$work/boundedrunc" ./hack/kindnode/boundedrunc)

# machine prints the state of the machine that could be different afterwards. Processes are not included: those of the
# engine are in a namespace that ends, and those of others start and end at any time.
machine() {
  # Sysctls that cannot be written, that count something, or that others change at any moment are not settings.
  sysctl --all 2>/dev/null | grep -E '^(kernel|vm|fs|net)\.' |
    grep -vE '^(kernel\.(random|ns_last_pid|pty\.nr|sched_domain|tainted|sysctl_writes_strict)|fs\.(dentry-state|file-nr|inode-nr|inode-state|aio-nr|quota)|net\.netfilter\.nf_conntrack_count|vm\.stat_refresh)' |
    sed 's/^/sysctl /'
  for tool in iptables-nft-save ip6tables-nft-save iptables-legacy-save ip6tables-legacy-save; do
    if command -v $tool >/dev/null; then $tool 2>/dev/null | grep -v '^#' | sed -E "s/ \[[0-9]+:[0-9]+\]//; s/^/$tool /" || true; fi
  done
  ip -oneline link | awk '{print "link " $2}'
  ip route | sed 's/^/route /'
  sed 's/^/mount /' /proc/mounts
  find /sys/fs/cgroup -mindepth 2 -maxdepth 2 -type d | sed 's/^/cgroup /'
  if [[ -d /lib/modules ]]; then echo "folder /lib/modules"; fi
}
before=$work/machine-before after=$work/machine-after
machine | sort >"$before"

# unshare is the parent of the namespace: everything in the namespace ends with it. Signals are passed on to its child.
# The machine is restored after unshare has ended.
status=0
unshare --mount --net --pid --fork --kill-child --mount-proc --propagation private "$0" --inside "$@" 8>&- &
namespace=$!
trap 'pkill -TERM -P $namespace 2>/dev/null || true' INT TERM
while kill -0 $namespace 2>/dev/null; do
  status=0
  wait $namespace || status=$?
done

# Restore the machine.
machine | sort >"$after"
comm -23 "$before" "$after" | sed -n 's/^sysctl //p' | while IFS= read -r line; do
  sysctl --quiet --write "${line%% = *}=${line#* = }" || true
done
comm -13 "$before" "$after" | sed -n 's/^cgroup //p' | while IFS= read -r folder; do
  find "$folder" -depth -type d -exec rmdir {} + 2>/dev/null || true
done
if ! grep -q '^folder /lib/modules' "$before"; then rmdir /lib/modules 2>/dev/null || true; fi
machine | sort >"$after"
if ! diff "$before" "$after" >&2; then
  say "the machine is not as it was before (above)"
  [[ $status != 0 ]] || status=1
else
  say "the machine is as it was before: $(wc -l <"$before") sysctls, rules, links, routes, mounts and control groups are the same"
fi
exit $status
