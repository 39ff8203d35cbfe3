#!/usr/bin/env bash
# Tries the bundle for OLM in a local Kubernetes of its own, without OLM: hack/bundle/olm creates what OLM would.
# Install for all namespaces, a SampleDB, uninstall, install for one namespace. The database's Pods must stay the same
# from beginning to end. That needs root, and a machine on which no cluster is up.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
needs_no_cluster 'the bundle for OLM'
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

# install makes what OLM makes, with the arguments of hack/bundle/olm, and waits for the operator.
install() {
  go run ./hack/bundle/olm -namespace $namespace "$@" "$work/bundle" >"$work/objects.yaml"
  kubectl apply --server-side -f "$work/objects.yaml" >/dev/null
  kubectl -n $namespace rollout status deployment/toban-operator --timeout=3m >/dev/null
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
go run ./hack/bundle -out "$work/bundle" -version v0.0.0 -image "toban:$tag" -url https://unpublished.invalid/toban

say 'install for all namespaces, and a database'
kubectl apply -f config/manager/namespace.yaml >/dev/null
for kind in config/crd/*.yaml; do
  kubectl apply --server-side -f "$work/bundle/manifests/${kind##*/}" >/dev/null
done
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

say 'uninstall'
kubectl delete --wait -f "$work/objects.yaml" >/dev/null
kubectl -n $namespace wait --for=delete pod -l app.kubernetes.io/component=operator --timeout=1m >/dev/null
kubectl -n $namespace get secret toban-operator >/dev/null || fail 'The root secret is gone.'
sql 'INSERT INTO kept VALUES (2)'
same 'Uninstalling the operator'

say 'install for one namespace'
install -watch default
bound=$(kubectl get clusterrolebindings -o name | grep toban || true)
[[ $bound == *-cluster ]] || fail "An operator of one namespace has more than one ClusterRole: $bound"
kubectl patch sampledb $database --type merge -p '{"spec": {"instances": 2}}' >/dev/null
ready 2
same 'Installing the operator for one namespace'
[[ $(sql 'SELECT count(*) FROM kept') == 2 ]] || fail 'Rows are missing.'
echo 'The bundle was installed for all namespaces, uninstalled, and installed for one; the database ran on.'
