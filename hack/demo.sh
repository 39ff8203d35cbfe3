#!/usr/bin/env bash
# The demo: a cluster, then the program in test/demo.
set -euo pipefail
cd "$(dirname "$0")/.."
hack/up.sh --quiet
export KUBECONFIG=$PWD/.local/kubeconfig PATH=$PWD/bin:$PATH
go run ./test/demo -timings .local/timings "$@"
