#!/usr/bin/env bash
# Runs the four rings of tests without the long stories, and the short drill. SHARE=2/12 adds the second of twelve
# shares of the long stories; where CI=true that share which ran longest ago is added (hack/suite), and more simulated
# elections. CI ends what takes longer than 90 minutes: there a slow machine runs half of the rings that are slow, by
# turns, and says so. A test that is skipped is a failure, unless hack/gotest/skips.txt declares it. The rings api and
# e2e need a Kubernetes: one that is running is used and left as it is, otherwise one is started and removed again.
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
KUBEBUILDER_ASSETS=$(bin/localkube assets)
export KUBEBUILDER_ASSETS
share=''
if [[ ${SHARE:-} || ${CI:-} ]]; then
  share=$(go run ./hack/suite share "${SHARE:-}")
fi
[[ -z $share ]] || step "long stories: share $share of them, which SHARE=$share asks for again"

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

# halve has CI run half of what follows where what it has run took longer than so many minutes.
halve() {
  [[ ${CI:-} && -z ${TOBAN_PART:-} ]] && (($1 > $2 * 60)) || return 0
  TOBAN_PART=$(go run ./hack/suite turn 2)
  export TOBAN_PART
  share=''
  step "this machine is slow: of the tests of the rings that follow it runs part $TOBAN_PART"
}

step 'ring 1: pure'
began=$SECONDS
in_memory hack/check.sh -count=1
halve $((SECONDS - began)) 5 # where it took ten minutes, all rings took more than a hundred

step 'reproducible build'
go run ./hack/release twice

step 'rings 2 and 3: local, real PostgreSQL servers and object stores; api, a real kube-apiserver'
[[ $(git rev-parse --is-shallow-repository 2>&1) == false ]] ||
  echo 'test/mixed is skipped: there is no history here to build former releases from. For that: git fetch --unshallow'
red=''
in_memory go run ./hack/suite ring servers || red=yes
in_memory go run ./hack/suite ring others || red=yes
[[ -z $red ]]
halve $((SECONDS - began)) 35 # what is left takes longer than what has been run

# Not before: a cluster without work needs a quarter of a processor. Its programs collect garbage half as often as by
# default: in what follows, processors are what is scarce.
step 'the cluster'
state=$(cluster)
[[ $state != down ]] || started=yes
GOGC=200 hack/up.sh --quiet

step 'ring 4: e2e, a real cluster'
hack/e2e.sh

[[ -z $share ]] || {
  step "long stories of ring 4: share $share"
  go run ./hack/suite long "$share" cluster
  finish
  started=''
  step "long stories of the rings 2 and 3: share $share"
  in_memory go run ./hack/suite long "$share" local
}
[[ -z ${CI:-} || ${TOBAN_PART:-} ]] || {
  step 'simulated elections: 40,000 schedules'
  go run ./hack/gotest -count=1 -timeout 30m ./internal/ha/simulation -schedules 40000
}
if [[ ${TOBAN_PART:-} ]]; then
  step "passed, with part $TOBAN_PART of the rings that are slow; long stories and more elections were left out"
else
  step "all rings passed${share:+, and the long stories of share $share}"
fi
