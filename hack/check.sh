#!/usr/bin/env bash
# What can be said of the code without running a server: format, vet, lint,
# pure tests, and whether the generated files are those of the code. Arguments
# are more for go test: -count=1.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/go.sh
step() { echo "== $*"; }

hack/deps.sh tests
[[ $(id -u) -ne 0 ]] || bin/localkube packages --install # its tests mount volumes where they may

step gofmt
unformatted=$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l)
if [[ -n $unformatted ]]; then
  echo "gofmt -w would change these:"$'\n'"$unformatted" >&2
  exit 1
fi

step vet
go vet -tags e2e,cluster ./...
go -C localkube vet -tags cluster ./...

step lint
lint=$(hack/tool.sh golangci-lint)
"$lint" run ./...
(cd localkube && "$lint" run --build-tags cluster ./...) # a module of its own, the same rules

step scripts
shellcheck --severity=warning hack/*.sh .ci/run

step generated files
hack/generate.sh --check

step pure tests
go run ./hack/suite ring pure "$@"
go run ./hack/suite ring localkube "$@"
