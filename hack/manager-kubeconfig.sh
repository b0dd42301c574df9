#!/usr/bin/env bash
# Writes DIR/manager.kubeconfig, with which a manager connects to the hub of a local fleet as its service account:
# `manager-kubeconfig.sh DIR`. It is the administrator's kubeconfig with the user replaced by a token of
# masthead-system/masthead.
set -euo pipefail
cd "$(dirname "$0")/.."
fleet=${1:?the folder of the fleet}
kubectl=bin/controlplane/kubectl
token=$("$kubectl" --kubeconfig "$fleet/hub.kubeconfig" create token masthead --namespace masthead-system --duration 24h)
(
  umask 077
  cp "$fleet/hub.kubeconfig" "$fleet/manager.kubeconfig"
)
config() { "$kubectl" --kubeconfig "$fleet/manager.kubeconfig" config "$@"; }
context=$(config current-context)
config set-credentials masthead --token "$token" >/dev/null
config set-context "$context" --user masthead >/dev/null
for user in $(config get-users | tail -n +2 | grep -v '^masthead$'); do
  config delete-user "$user" >/dev/null
done
