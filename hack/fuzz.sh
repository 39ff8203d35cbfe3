#!/usr/bin/env bash
# Looks for inputs that break what reads them: every fuzz test of these packages, or of all, one after the other.
# hack/fuzz.sh 10m ./internal/backup. An input that it finds is kept in the package's testdata/fuzz, and is tried by
# go test from then on.
set -euo pipefail
cd "$(dirname "$0")/.."
each=${1:-5m}
shift || true
packages=("$@")
[[ ${#packages[@]} -gt 0 ]] || packages=(./internal/... ./api/... ./cmd/...)

# Not in the loop, where its failure would go unnoticed.
all=$(go list "${packages[@]}")
tried=0 failed=()
for package in $all; do
  tests=$(go test -list '^Fuzz' "$package")
  for name in $(grep '^Fuzz' <<<"$tests" || true); do
    echo "== $name of $package, for $each"
    ((++tried))
    go test -run '^$' -fuzz "^$name\$" -fuzztime "$each" "$package" || failed+=("$package $name")
  done
done
((tried > 0)) || { echo 'NOT TRIED: these packages have no fuzz test' >&2; exit 1; }
[[ ${#failed[@]} -eq 0 ]] || { printf 'failed: %s\n' "${failed[@]}" >&2; exit 1; }
