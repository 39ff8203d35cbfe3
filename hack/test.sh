#!/usr/bin/env bash
# Runs all four rings of tests. A test that is skipped is a failure, unless hack/gotest/skips.txt declares it. The rings
# api and e2e need a Kubernetes: one that is running is used and left as it is, otherwise one is started and removed
# again.
set -euo pipefail
cd "$(dirname "$0")/.."
step() { echo "=== $* (after $SECONDS s)"; }

# From here on only programs are found whose packages are declared, so that one which somebody installed by hand can't
# hide that it is not. A Kubernetes that is running already has the PATH with which it was started.
declared() {
  local packages
  packages=$(hack/deps.sh --list && bin/localkube packages) || return
  mapfile -t packages <<<"$packages"
  hack/path.sh /run/toban-programs "${packages[@]}" # not below a home: PostgreSQL's user runs programs too
}
step 'programs: those of declared packages, and Go'
PATH=$(declared)
hack/deps.sh tests # what is here by hand alone is now missing, and installed
bin/localkube packages --install
PATH=$(declared)
. hack/env.sh

started='' up=''
finish() {
  [[ -z $up ]] || wait "$up" || true
  [[ -z $started ]] || bin/localkube down
}
trap finish EXIT

# On a machine without caches it takes longest. The cluster's programs collect garbage half as often as by default: in
# what follows, processors are what is scarce.
step 'a cluster starts beside ring 1'
[[ $(cluster) != down ]] || started=yes
mkdir -p .local
GOGC=200 hack/up.sh --quiet >.local/test-up.log 2>&1 &
up=$!

step 'ring 1: pure'
hack/check.sh

step 'reproducible build'
hack/reproducible.sh

step 'the cluster'
ended=0
wait "$up" || ended=$?
up=
cat .local/test-up.log
((ended == 0))

step 'rings 2 and 3: local, real PostgreSQL servers and object stores; api, a real kube-apiserver'
[[ $(git rev-parse --is-shallow-repository 2>&1) == false ]] ||
  echo 'test/mixed is skipped: there is no history here to build former releases from. For that: git fetch --unshallow'
# Most of their time they wait for servers. The longest begin first.
KUBEBUILDER_ASSETS=$(bin/localkube assets) go run ./hack/gotest -p 3 -count=1 -timeout 25m -skip '^TestLong[A-Z]' \
  ./test/local ./test/api/... ./test/local/... ./test/mixed/... ./test/stores/...

step 'ring 4: e2e, a real cluster'
hack/e2e.sh
step 'all rings passed'
