# shellcheck shell=bash
# Sourced by the scripts that try a way to install the operator, in a local Kubernetes of their own: a folder, a
# database whose Pods must stay the same from beginning to end, and how to see that.
# shellcheck disable=SC2034 # some of it is for those scripts
work=$(mktemp -d)
trap 'bin/localkube down; rm -rf "$work"' EXIT
namespace=toban-system database=story
tag=$(sha256sum bin/toban | cut -c1-12)

say() { echo "== $*"; }

fail() {
  echo "$*" >&2
  kubectl get pods --all-namespaces -o wide >&2
  exit 1
}

# pods prints the instances, each with how often its containers have been started again.
pods() {
  kubectl get pods -l "toban.dev/sampledb=$database,toban.dev/component=instance" --sort-by=.metadata.name -o \
    jsonpath='{range .items[*]}{.metadata.name} {.metadata.uid} {.status.containerStatuses[*].restartCount}{"\n"}{end}'
}

# same fails if one of the Pods that were there is another one, or was started again.
same() {
  local now
  now=$(pods)
  [[ $now == "$before"* ]] || fail "$1 replaced or restarted instances. Before:"$'\n'"$before"$'\n'"Now:"$'\n'"$now"
}

# ready waits until the database is as its spec wants it, with a number of instances.
ready() {
  kubectl wait "sampledb/$database" --for="jsonpath={.status.readyInstances}=$1" --timeout=5m >/dev/null
  kubectl wait "sampledb/$database" --for=condition=Ready --timeout=5m >/dev/null
}

# sql runs a command of SQL in the primary.
sql() { bin/toban psql $database -- -Atqc "$1"; }

# cluster_of_its_own starts the local Kubernetes, with the operator's image and PostgreSQL's in it.
cluster_of_its_own() {
  local tars
  bin/localkube up
  tars=$(hack/images.sh)
  mapfile -t tars <<<"$tars"
  bin/localkube load "${tars[@]}"
}

# make_database makes the database, and notes its Pods.
make_database() {
  kubectl apply -f - >/dev/null <<END
apiVersion: toban.dev/v1
kind: SampleDB
metadata: {name: $database}
spec: {version: 17, instances: 1, storage: {size: 1Gi}}
END
  ready 1
  sql 'CREATE TABLE public.kept AS SELECT 1 AS n'
  before=$(pods)
  [[ -n $before ]] || fail 'No instance was found of which the Pods could stay the same.'
}
