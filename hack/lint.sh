#!/usr/bin/env bash
# Runs the linters, and checks that no generated or tidied file has drifted.
set -euo pipefail
cd "$(dirname "$0")/.."
# With the settings of bin/manager and the control planes, so that packages that they share are compiled only once.
export CGO_ENABLED=0 GOFLAGS="-trimpath $(go env GOFLAGS)"
lint=$(hack/tool.sh golangci-lint)
deadcode=$(hack/tool.sh deadcode)
echo "== go mod tidy leaves no difference"
go mod tidy -diff
go -C test mod tidy -diff
echo "== the generated files are up to date"
before=$(find apis pkg/references/testdata/managedexample config/crd config/clusterprofiles config/references charts docs/health-library.md docs/chart-values.md docs/reference config/grafana -type f -exec sha256sum {} + | sort -k2)
hack/generate.sh
after=$(find apis pkg/references/testdata/managedexample config/crd config/clusterprofiles config/references charts docs/health-library.md docs/chart-values.md docs/reference config/grafana -type f -exec sha256sum {} + | sort -k2)
if [[ $before != "$after" ]]; then
  diff <(echo "$before") <(echo "$after") || true
  echo "lint: 'make generate' changed files; commit what it made" >&2
  exit 1
fi
echo "== prose is in lines of at most 120 characters"
# Left out: apis, whose comments become descriptions with line breaks; tables, code and links, which cannot be broken;
# and two pages that are generated.
long=$(
  git ls-files '*.go' | grep -v -e zz_generated -e '^apis/' | LC_ALL=C.UTF-8 xargs awk '
    /^\t*\/\/ / && length($0) > 120 && !/nolint|https?:/ {print FILENAME ":" FNR}'
  git ls-files '*.md' | grep -v -e docs/health-library.md -e docs/chart-values.md | LC_ALL=C.UTF-8 xargs awk '
    FNR == 1 {code = 0} /^ *```/ {code = !code} !code && length($0) > 120 && !/^ *\|/ && !/\]\(http/ {print FILENAME ":" FNR}'
)
if [[ -n $long ]]; then
  echo "$long" >&2
  exit 1
fi
echo "== plain words"
# NoBody is net/http's.
words='somebody|nobody|whoever|whatever|told|asked|anew|fares?|lasts|seldom'
if git grep -nwiE "$words" -- '*.go' '*.md' '*.sh' '*.yml' '*.yaml' ':!*/testdata/*' ':!hack/lint.sh' | grep -vE 'http\.NoBody' >&2; then
  exit 1
fi
echo "== a test file carries the name of a file or the package that it tests"
# Left out: what several test files use, and tests of all decisions, benchmarks and fuzz tests of a whole package.
strangers=$(git ls-files 'cmd/*_test.go' 'internal/*_test.go' 'pkg/*_test.go' | grep -v /testdata/ | while read -r file; do
  dir=${file%/*} base=${file##*/} base=${base%_test.go}
  [[ $base =~ ^(main|suite|export|.*helpers|exhaustive|bench|fuzz)$ || $base == "${dir##*/}" ]] && continue
  until [[ -f $dir/$base.go ]]; do
    [[ $base == *_* ]] || { echo "$file" && break; }
    base=${base%_*}
  done
done)
if [[ -n $strangers ]]; then
  echo "$strangers" >&2
  exit 1
fi
echo "== golangci-lint"
"$lint" run ./...
(cd test && "$lint" run ./...)
echo "== no function is unreachable from the programs"
# The program that writes the reference of metrics makes each package create its metrics.
# Left out: pkg/references is also a library, for authors of Crossplane providers (pkg/references/provider), and tests
# of three packages install the admission policies that takeover.Policies returns.
dead=$("$deadcode" -filter '^github\.com/masthead-dev/masthead/(apis|cmd|internal|pkg)(/|$)' ./cmd/... ./hack/metricreference |
  grep -vE '^pkg/(references/mapping\.go:.*(NewMapper|restMapper\.MappingFor)|takeover/policies\.go:.*Policies)$' || true)
if [[ -n $dead ]]; then
  echo "$dead" >&2
  exit 1
fi
