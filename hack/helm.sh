#!/usr/bin/env bash
# Tries the Helm chart in a local Kubernetes of its own: install, a SampleDB, upgrade, uninstall, install again. The
# database's Pods must stay the same from beginning to end. That needs root, and a machine on which no cluster is up.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
needs_no_cluster 'the Helm chart'
helm=$(hack/tool.sh helm)
. hack/installing.sh

chart() {
  local verb=$1
  shift
  "$helm" "$verb" toban "$work/toban" --namespace $namespace --wait --timeout 3m "$@" >/dev/null
}

install() {
  chart install --create-namespace --set "image.repository=toban,image.digest=,image.tag=$tag"
}

cluster_of_its_own
go run ./hack/chart -out "$work/toban" -version v0.0.0 -repository toban

say 'install, and a database'
install
make_database

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
