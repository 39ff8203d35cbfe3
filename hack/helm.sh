#!/usr/bin/env bash
# Tries the Helm chart in a local Kubernetes of its own: install, a SampleDB, upgrade, uninstall, install again. The
# database's Pods must stay the same from beginning to end. That needs root, and a machine on which no cluster is up.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
needs_no_cluster 'the Helm chart'
helm=$(hack/tool.sh helm)
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

chart() {
  local verb=$1
  shift
  "$helm" "$verb" toban "$work/toban" --namespace $namespace --wait --timeout 3m "$@" >/dev/null
}

install() {
  chart install --create-namespace --set "image.repository=toban,image.digest=,image.tag=$tag"
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

bin/localkube up
tars=$(hack/images.sh)
mapfile -t tars <<<"$tars"
bin/localkube load "${tars[@]}"
go run ./hack/chart -out "$work/toban" -version v0.0.0 -repository toban

say 'install, and a database'
install
kubectl apply -f - >/dev/null <<END
apiVersion: toban.dev/v1
kind: SampleDB
metadata: {name: $database}
spec: {version: 17, instances: 1, storage: {size: 1Gi}}
END
ready 1
sql 'CREATE TABLE kept AS SELECT 1 AS n'
before=$(pods)

say 'upgrade with other values'
chart upgrade --reuse-values --set replicas=2,podAnnotations.story=changed
[[ $(kubectl -n $namespace get deployment toban-operator -o jsonpath='{.status.readyReplicas}') == 2 ]] ||
  fail 'The upgrade gave no second operator.'
same 'An upgrade of the chart'

say 'uninstall'
"$helm" uninstall toban --namespace $namespace --wait >/dev/null
kubectl -n $namespace get secret toban-operator >/dev/null || fail 'The root secret is gone.'
sql 'INSERT INTO kept VALUES (2)'
same 'Uninstalling the chart'

say 'install again'
install
kubectl patch sampledb $database --type merge -p '{"spec": {"instances": 2}}' >/dev/null
ready 2
same 'Installing the chart again'
[[ $(sql 'SELECT count(*) FROM kept') == 2 ]] || fail 'Rows are missing.'
echo 'The chart was installed, upgraded, uninstalled and installed again; the database ran on.'
