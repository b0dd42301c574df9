# What the demos share. Sourced in the root of the repository, by a script that has `set -euo pipefail`.
# shellcheck shell=bash

fleet=.localfleet
kubectl=bin/controlplane/kubectl
started=$SECONDS

bold=$'\e[1m'; dim=$'\e[2m'; off=$'\e[0m'
[[ -t 1 && -z ${NO_COLOR:-} ]] || { bold=; dim=; off=; }
step() { printf '\n%s== %s%s\n' "$bold" "$*" "$off"; }
say() { printf '%s\n' "$*"; }
die() { printf 'demo: %s\n' "$*" >&2; exit 1; }

# on hub|w1|w2 ARGS...: kubectl against one cluster. show does the same and prints the command first.
on() { local where=$1; shift; "$kubectl" --kubeconfig "$fleet/$where.kubeconfig" --cache-dir "$fleet/kubectl-cache/$where" "$@"; }
show() {
  local where=$1; shift
  printf '%s$ kubectl --kubeconfig %s' "$dim" "$fleet/$where.kubeconfig"
  local word
  for word in "$@"; do
    [[ $word =~ ^[A-Za-z0-9_./:=,@-]+$ ]] && printf ' %s' "$word" || printf " '%s'" "$word"
  done
  printf '%s\n' "$off"
  on "$where" "$@"
}
# refused CLUSTER ARGS...: shows a command that must fail, and its output.
refused() {
  local answer
  if answer=$(show "$@" 2>&1); then
    printf '%s\n' "$answer"
    return 1
  fi
  printf '%s\n' "$answer"
}
# wait_for WHAT COMMAND...: repeats the command until it succeeds, and reports what is missing if it never does.
wait_for() {
  local what=$1 deadline=$((SECONDS + 300)); shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < deadline)) || die "still waiting for $what after 300 s; the manager's log is $fleet/manager.log"
    sleep 0.2
  done
}
