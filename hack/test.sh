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

# in_memory COMMAND… gives a command temporary files in memory, where there is enough of it; they go when all that the
# command has started has ended. The servers of tests make and remove thousands of files: on a disk that is a third of
# their work. Tests end processes and no machine, so that what was synced to memory is there afterwards. What go builds
# stays on the disk.
in_memory() {
  local folder=/run/toban-tests disk=${TMPDIR:-/tmp} # short: sockets are in it
  if (($(id -u) != 0 || $(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo) < 12)); then
    "$@"
    return
  fi
  mkdir -p "$folder"
  GOTMPDIR=$disk TMPDIR=$folder unshare --mount \
    sh -c 'mount -t tmpfs -o mode=1777,size=8g toban-tests "$TMPDIR" && exec "$@"' sh "$@"
}

started=''
finish() { [[ -z $started ]] || bin/localkube down; }
trap finish EXIT

step 'ring 1: pure'
in_memory hack/check.sh -count=1

step 'reproducible build'
hack/reproducible.sh

step 'rings 2 and 3: local, real PostgreSQL servers and object stores; api, a real kube-apiserver'
[[ $(git rev-parse --is-shallow-repository 2>&1) == false ]] ||
  echo 'test/mixed is skipped: there is no history here to build former releases from. For that: git fetch --unshallow'
# The two longest run side by side, each with two tests at a time: more of them slow each other so much that servers are
# late for their deadlines. The others mostly wait: three of them at a time. On a machine that is busy with other work
# all take twice as long: the timeout is for what hangs.
ring() { in_memory go run ./hack/gotest -count=1 -timeout 50m -skip '^TestLong[A-Z]' "$@"; }
others=$(go list ./test/local/... ./test/mixed/... ./test/stores/... | grep -v '/test/local$')
mapfile -t others <<<"$others"
red=''
KUBEBUILDER_ASSETS=$(bin/localkube assets) ring -p 2 ./test/local ./test/api/... || red=yes
ring -p 3 "${others[@]}" || red=yes
[[ -z $red ]]

# Not before: a cluster without work needs a quarter of a processor. Its programs collect garbage half as often as by
# default: in what follows, processors are what is scarce.
step 'the cluster'
[[ $(cluster) != down ]] || started=yes
GOGC=200 hack/up.sh --quiet

step 'ring 4: e2e, a real cluster'
hack/e2e.sh
step 'all rings passed'
