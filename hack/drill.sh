#!/usr/bin/env bash
# Breaks a database in every way of the fault table, on the cluster of make up, and
# judges from outside: hack/drill.sh -rounds 3 -only node-cut. docs/drillsrun.md has more.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
mkdir -p .local
# Built and not run by go run, which would pass no Ctrl-C on.
go build -o .local/bin/drill ./test/drill
exec .local/bin/drill "$@"
