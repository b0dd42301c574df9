#!/usr/bin/env bash
# Stops what the demo left running and removes its folder.
set -euo pipefail
cd "$(dirname "$0")/.."
fleet=.localfleet
if [[ ! -d $fleet ]]; then
  echo "there is no $fleet, so nothing to stop"
  exit 0
fi
hack/demo-stop.sh "$fleet" manager
hack/demo-stop.sh "$fleet" fakecloud
bin/localfleet down --dir "$fleet"
rm -rf "$fleet"
