#!/usr/bin/env bash
# Runs every fuzz test for FUZZTIME, one after the other.
set -euo pipefail
cd "$(dirname "$0")/.."
grep -rlE '^func Fuzz' --include='*_test.go' . | while read -r file; do
  grep -oE '^func (Fuzz[A-Za-z0-9_]+)' "$file" | awk '{print $2}' | while read -r name; do
    echo "== $name in $(dirname "$file")"
    go -C "$(dirname "$file")" test -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZTIME:-30s}"
  done
done
