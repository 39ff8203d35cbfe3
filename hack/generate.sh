#!/usr/bin/env bash
# Writes the generated files: deep copies, CRDs, crds.yaml, install.yaml, install-namespaced.yaml, guard.yaml, the
# references, and the alerts and dashboards. With --check it writes nothing, and fails where one is not what it would be
# (but for the pages of the commands, which the test of cmd/toban checks).
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/go.sh

generate() {
  local gen
  gen=$(hack/tool.sh controller-gen)
  "$gen" object paths=./api/...
  "$gen" crd paths=./api/... output:crd:dir=config/crd
  go run ./hack/crds
  go run ./hack/installyaml
  go run ./hack/guard
  go run ./hack/reference
  go run ./hack/monitoring
}

if [[ ${1:-} != --check ]]; then
  generate
  # The pages of the commands, which the same test compares.
  go test ./cmd/toban -update -run '^TestTheReferenceOfTheCommands$'
  exit
fi
# In a copy, so that a check changes nothing.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -co --exclude-standard -z -- api cmd config docs hack internal test/monitoring tools go.mod go.sum |
  while IFS= read -r -d '' f; do [[ ! -e $f ]] || printf '%s\0' "$f"; done |
  tar c --null -T - | tar x -C "$copy"
"$copy/hack/generate.sh"
# There are always differences, such as .git: diff that finds none, or fails, has compared nothing.
differ=$(diff -rq "$copy" .) && code=0 || code=$?
((code == 1)) || { echo "The generated files could not be compared: diff ended with $code." >&2; exit 1; }
stale=$(grep -v '^Only in \.' <<<"$differ" || true)
if [[ -n $stale ]]; then
  echo "These are stale; make generate writes them anew:"$'\n'"$stale" >&2
  exit 1
fi
