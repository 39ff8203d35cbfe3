#!/usr/bin/env bash
# Judges a change of some packages in seconds: format, vet, lint and the tests of the packages whose files differ from
# the last commit, or of those that are named. It stands for no other check: make check is for the end.
#   hack/quick.sh [PACKAGE…]
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/go.sh
packages=("$@")
if (($# == 0)); then
  mapfile -t packages < <({ git diff --name-only --diff-filter=d HEAD; git ls-files -o --exclude-standard; } |
    grep '\.go$' | grep -v '^localkube/' | xargs -r dirname | sort -u | sed 's|^|./|')
fi
((${#packages[@]} > 0)) || { echo 'no package differs from the last commit'; exit; }
printf '%s\n' "${packages[@]}"
unformatted=$(for p in "${packages[@]}"; do gofmt -l "$p"; done)
[[ -z $unformatted ]] || { echo "gofmt -w would change these:"$'\n'"$unformatted" >&2; exit 1; }
go vet -tags e2e,cluster "${packages[@]}"
"$(hack/tool.sh golangci-lint)" run --build-tags e2e,cluster "${packages[@]}"
go run ./hack/gotest -short "${packages[@]}"
