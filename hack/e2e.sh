#!/usr/bin/env bash
# Runs the stories of test/e2e, but for the long ones (TestLong…), and then the short drill; or some stories:
# hack/e2e.sh -run TestRestore. They need the cluster of make up, and load what images they need beyond its own.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh

TOBAN_AUDIT_LOG=$(bin/localkube status -o json | sed -n 's/^ *"auditLog": "\(.*\)",$/\1/p')
export TOBAN_AUDIT_LOG
tars=$(hack/examples.sh)
mapfile -t tars <<<"$tars"
# An S3 server, by the name that its image's program gets.
mkdir -p .local/versitygw
cp "$(hack/tool.sh versitygw)" .local/versitygw/versitygw
s3=$(bin/localkube image binary --name versitygw:1 --binary .local/versitygw/versitygw \
  --description 'An S3 server for the stories')
# The operator that runs, with a byte behind its program: another release, for the story in which agents are replaced.
mkdir -p .local/other
{ cat bin/toban; printf 0; } >.local/other/toban
chmod 755 .local/other/toban
other=$(bin/localkube image binary --name toban:other --binary .local/other/toban \
  --description 'Toban, another release for the stories')
bin/localkube load "${tars[@]}" "$s3" "$other" postgres:15 postgres:18
go run ./hack/suite ring stories "$@"
(($# == 0)) || exit 0
go run ./hack/suite ring drill
