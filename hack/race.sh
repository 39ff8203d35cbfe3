#!/usr/bin/env bash
# Runs the tests of all that has goroutines of its own under Go's race detector, which needs a C compiler, and in
# another order each time: no test may rest on one before it.
set -euo pipefail
cd "$(dirname "$0")/.."
hack/deps.sh race
# shellcheck source=hack/env.sh
. hack/env.sh
CGO_ENABLED=1 go run ./hack/gotest -race -shuffle=on -count=1 -timeout 30m \
  ./internal/agent/... ./internal/archive/... ./internal/operator/... \
  ./internal/front/pooler/... ./internal/work/... ./cmd/...
