#!/usr/bin/env bash
# The demo: a cluster, then the program in test/demo.
set -euo pipefail
cd "$(dirname "$0")/.."
hack/up.sh --quiet --few-images # the demo runs no MyApp
. hack/env.sh
go run ./test/demo -timings .local/timings "$@"
