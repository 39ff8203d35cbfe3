#!/usr/bin/env bash
# Runs all four rings of tests. The rings api and e2e need a Kubernetes: one that is
# running is used and left as it is, otherwise one is started and removed
# again.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
step() { echo "=== $* (after $SECONDS s)"; }

started=
finish() {
  [[ -z $started ]] || bin/localkube down
}
trap finish EXIT

step 'ring 1: pure'
hack/check.sh

step 'ring 2: local, real PostgreSQL servers, real object stores'
go test -count=1 -timeout 20m ./test/local/... ./test/stores/...

step 'ring 3: api, a real kube-apiserver'
KUBEBUILDER_ASSETS=$(bin/localkube assets) go test -count=1 -timeout 20m ./test/api/...

step 'ring 4: e2e, a real cluster'
[[ $(cluster) != down ]] || started=yes
hack/up.sh --quiet
hack/e2e.sh
step 'all rings passed'
