#!/usr/bin/env bash
# Runs a command where a container engine answers: `engine.sh COMMAND...`.
#
# If Docker answers (as DOCKER_HOST and docker's contexts say), the command runs with it, and the engine goes on. Otherwise,
# for root, dockerd is started for the command and ended after it, with a data root of its own, bin/kindnode/docker. It
# runs, and so does the command, in namespaces for network, mounts and processes of their own: its bridges, its rules of
# iptables, its mounts and whatever runs in its containers end with it, however it ends. What is left on a machine is put back
# here: sysctls that know no namespace, control groups, and /lib/modules if Docker made it. Before and after are compared,
# and a difference is an error.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(cd "$here/../.." && pwd)/bin/kindnode
say() { echo "engine: $*" >&2; }
# What is named is for whoever asks for Docker's version.
answers() { docker version --format '{{.Server.Version}}' 2>/dev/null; }

# Inside: everything that is started here ends with this shell, which is the first process of its namespace.
if [[ ${1:-} == --inside ]]; then
  shift
  mount -t tmpfs tmpfs /run
  ip link set lo up
  export DOCKER_HOST=unix:///run/docker.sock
  runtime=()
  # Docker asks for all capabilities when a container is privileged; where one of them is nobody's, runc refuses.
  last=$(</proc/sys/kernel/cap_last_cap)
  if [[ $((16#$(awk '/^CapBnd/ {print $2}' /proc/self/status))) != "$(((1 << (last + 1)) - 1))" ]]; then
    runtime=(--add-runtime "bounded=$work/boundedrunc" --default-runtime bounded)
  fi
  # Its containerd takes the shim that is found first: not one of bin/kindnode.
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
  # Asked, and not only ended with its namespace, so that it leaves its data whole.
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

# machine prints what of the machine could be different afterwards. Processes are not among it: those of the engine are in a
# namespace that ends, and those of others come and go.
machine() {
  # Those that cannot be written, count, or are somebody's at every moment, are nobody's setting.
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

# One after the other: the parent of the namespace, whose end ends everything in it, and who is told of signals.
status=0
unshare --mount --net --pid --fork --kill-child --mount-proc --propagation private "$0" --inside "$@" 8>&- &
namespace=$!
trap 'pkill -TERM -P $namespace 2>/dev/null || true' INT TERM
while kill -0 $namespace 2>/dev/null; do
  status=0
  wait $namespace || status=$?
done

# Putting back.
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
