#!/usr/bin/env bash
# Runs the manager as a container: builds the image, loads it into Docker, and waits until the container, which is
# confined as config/manager confines the Pod, has connected a workload cluster of a local fleet.
# hack/kindnode/engine.sh finds the engine, or starts one for root.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$PWD/bin/test-image
if [[ ${1:-} != --engine ]]; then
  rm -rf "$work"
  PLATFORMS=linux/$(go env GOARCH) DIST=$work hack/image.sh
  exec hack/kindnode/engine.sh hack/test-image.sh --engine
fi

fleet=$work/fleet kubectl=bin/controlplane/kubectl container=
on() { local where=$1; shift; "$kubectl" --kubeconfig "$fleet/$where.kubeconfig" --cache-dir "$fleet/kubectl-cache/$where" "$@"; }
fail() {
  [[ -z $container ]] || docker logs --tail 20 "$container" >&2
  echo "test-image: $*" >&2
  exit 1
}
end() {
  [[ -z $container ]] || docker rm --force "$container" >/dev/null
  if [[ -d $fleet ]]; then bin/localfleet down --dir "$fleet" >&2; fi
}
trap end EXIT
# within SECONDS WHAT COMMAND...: repeats the command until it succeeds.
within() {
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < deadline)) || fail "still waiting for $what"
    [[ $(docker inspect --format '{{.State.Running}}' "$container") == true ]] || fail "the container has ended"
    sleep 0.2
  done
}
# get PORT PATH: bash speaks enough HTTP for that, so that curl is not needed.
get() {
  exec 3<>"/dev/tcp/127.0.0.1/$1" || return 1
  printf 'GET %s HTTP/1.0\r\n\r\n' "$2" >&3
  cat <&3
  exec 3>&-
}
answers() { [[ $(get 18081 /readyz | head -n 1) == *" 200 "* ]]; }

image=$(docker load --quiet --input "$work/masthead.tar" | sed -n 's/^Loaded image: //p')
[[ -n $image ]] || fail "Docker names no image in the archive"
version=${image##*:}
said=$(docker run --rm "$image" --version)
[[ $said == *"${version%-arm64}"* ]] || fail "the image is called $image, and its manager says: $said"
user=$(docker image inspect --format '{{.Config.User}}' "$image")
[[ $user == 65532* ]] || fail "the image runs as the user \"$user\""
echo "== $image is loaded, runs as $user, and says: $said"

bin/localfleet up --workloads 1 --dir "$fleet" >&2
on hub apply --server-side -k config/default/crds-and-rights >/dev/null
on w1 apply --server-side -f config/workload >/dev/null
on hub create namespace bar >/dev/null
on hub apply --server-side -f config/samples/hub >/dev/null
hack/manager-kubeconfig.sh "$fleet"
# The container's user does not exist on this machine.
install -m 0444 "$fleet/manager.kubeconfig" "$work/kubeconfig"

container=$(docker run --detach --network host --read-only --cap-drop ALL --security-opt no-new-privileges --memory 1g \
  --volume "$work/kubeconfig:/etc/masthead/kubeconfig:ro" "$image" --kubeconfig /etc/masthead/kubeconfig --leader-elect=false \
  --metrics-bind-address 127.0.0.1:18080 --metrics-secure=false --health-bind-address 127.0.0.1:18081 --allow-loopback-endpoints)
within 60 "the manager to be ready" answers
on hub label clusters.cluster.x-k8s.io w1 masthead.dev/enroll=true >/dev/null
within 120 "w1 to be connected" on hub wait --for=condition=Connected --timeout=5s clusterprofiles/capi-w1
metrics=$(get 18080 /metrics)
[[ $metrics == *"masthead_build_info{"*"version=\"${version%-arm64}\""* ]] || fail "the metrics do not say which version runs"
limit=$(awk '$1 == "go_gc_gomemlimit_bytes" {printf "%d", $2 / 1048576}' <<<"$metrics")
((limit > 900 && limit < 930)) || fail "the heap is limited to \"$limit\" MiB, not to nine tenths of the container's 1024"
echo "== the container has connected w1, and keeps its heap within $limit MiB"
docker stop --time 60 "$container" >/dev/null
status=$(docker inspect --format '{{.State.ExitCode}}' "$container")
[[ $status == 0 ]] || fail "the manager ended with $status when it was stopped"
echo "== it ended by itself when it was stopped"
