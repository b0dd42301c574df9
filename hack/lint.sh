#!/usr/bin/env bash
# The linters, and a check that nothing that is generated or tidied has drifted.
set -euo pipefail
cd "$(dirname "$0")/.."
lint=$(hack/tool.sh golangci-lint)
deadcode=$(hack/tool.sh deadcode)
echo "== go mod tidy leaves no difference"
go mod tidy -diff
echo "== the generated files are up to date"
before=$(find apis internal/managedexample config/crd config/references docs/health-library.md -type f -exec sha256sum {} + | sort -k2)
hack/generate.sh
after=$(find apis internal/managedexample config/crd config/references docs/health-library.md -type f -exec sha256sum {} + | sort -k2)
if [[ $before != "$after" ]]; then
  diff <(echo "$before") <(echo "$after") || true
  echo "lint: 'make generate' changed files; commit what it made" >&2
  exit 1
fi
echo "== golangci-lint"
"$lint" run ./...
echo "== no function is unreachable from the programs (the local fleet is also a library for tests)"
# What is left out: pkg/references is also a library, for authors of Crossplane providers (pkg/references/provider), and tests of three
# packages install the admission policies as takeover.Policies gives them.
dead=$("$deadcode" -filter '^github\.com/masthead-dev/masthead/(apis|cmd|internal|pkg)(/|$)' ./cmd/... |
  grep -vE '^pkg/(references/mapping\.go:.*(NewMapper|restMapper\.MappingFor)|takeover/policies\.go:.*Policies)$' || true)
if [[ -n $dead ]]; then
  echo "$dead" >&2
  exit 1
fi
