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

# What runs beside something else says what it has to say when it has ended.
mkdir -p .local
beside() { # beside NAME COMMAND…
  local name=$1
  shift
  "$@" >".local/test-$name.log" 2>&1 &
  pids[$name]=$!
}
await() { # await NAME
  local ended=0
  wait "${pids[$1]}" || ended=$?
  unset "pids[$1]"
  cat ".local/test-$1.log"
  return "$ended"
}
declare -A pids=()
started=
finish() {
  local name
  for name in "${!pids[@]}"; do # only where something has failed
    await "$name" || true
  done
  [[ -z $started ]] || bin/localkube down
}
trap finish EXIT

# On a machine without caches it takes longest.
step 'a cluster starts beside ring 1'
[[ $(cluster) != down ]] || started=yes
beside up hack/up.sh --quiet

step 'ring 1: pure'
hack/check.sh

step 'reproducible build'
hack/reproducible.sh
await up

step 'rings 2 and 3: local, real PostgreSQL servers and object stores; api, a real kube-apiserver'
[[ $(git rev-parse --is-shallow-repository 2>&1) == false ]] ||
  echo 'test/mixed is skipped: there is no history here to build former releases from. For that: git fetch --unshallow'
# Most of their time they wait for servers. The longest begin first. Beside them are the stories of the cluster that no
# other story may run beside: they wait most of all.
beside alone hack/e2e.sh -run '^TestAlone'
KUBEBUILDER_ASSETS=$(bin/localkube assets) go run ./hack/gotest -p 3 -count=1 -timeout 25m \
  ./test/local ./test/api/... ./test/local/... ./test/mixed/... ./test/stores/...
await alone

step 'ring 4: e2e, a real cluster'
hack/e2e.sh -skip '^TestAlone'
hack/e2e.sh -drill
step 'all rings passed'
