#!/usr/bin/env bash
# Tries the Helm chart in a local Kubernetes of its own: install, a SampleDB, upgrade, uninstall, install again; then
# two shards with several SampleDBs, of which one loses its operator, and one shard again. The databases' Pods must stay
# the same from beginning to end. That needs root, and a machine on which no cluster is up.
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

# shard_of prints which of two shards a SampleDB is of: rule S1 of docs/scale.md.
shard_of() { echo $((16#$(printf 'default/%s' "$1" | sha256sum | cut -c16) % 2)); }

# instances prints all instances of all SampleDBs, each with how often its containers have been started again.
instances() {
  kubectl get pods -l toban.dev/component=instance --sort-by=.metadata.name -o \
    jsonpath='{range .items[*]}{.metadata.name} {.metadata.uid} {.status.containerStatuses[*].restartCount}{"\n"}{end}'
}

# stays fails if an instance of any SampleDB is another one than before, or was started again.
stays() {
  local now
  now=$(instances)
  [[ $now == "$all" ]] || fail "$1 replaced or restarted instances. Before:"$'\n'"$all"$'\n'"Now:"$'\n'"$now"
}

# told_by prints which operators have told events of a SampleDB, by their Pods.
told_by() {
  kubectl get events --field-selector "involvedObject.kind=SampleDB,involvedObject.name=$1" \
    -o jsonpath='{range .items[*]}{.reportingInstance}{"\n"}{end}' | sort -u
}

# acts_on changes a parameter of a SampleDB, and waits until its server has it.
acts_on() {
  local end=$((SECONDS + 180))
  kubectl patch sampledb "$1" --type merge \
    -p "{\"spec\": {\"postgresql\": {\"parameters\": {\"work_mem\": \"$2\"}}}}" >/dev/null
  until [[ $(bin/toban psql "$1" -- -Atqc 'SHOW work_mem') == "$2" ]]; do
    ((SECONDS < end)) || fail "Nobody has given $1 its work_mem of $2."
    sleep 1
  done
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
sql 'INSERT INTO public.kept VALUES (2)'
same 'Uninstalling the chart'

say 'install again'
install
kubectl patch sampledb $database --type merge -p '{"spec": {"instances": 2}}' >/dev/null
ready 2
same 'Installing the chart again'
[[ $(sql 'SELECT count(*) FROM public.kept') == 2 ]] || fail 'Rows are missing.'

say 'two shards, and two databases of each'
chart upgrade --reuse-values --set shards=2
declare -A number=()
of_shard=(0 0)
for letter in {a..z}; do
  shard=$(shard_of "sharded-$letter")
  ((of_shard[shard] < 2)) || continue
  number[sharded-$letter]=$shard
  ((++of_shard[shard]))
done
((${#number[@]} == 4)) || fail "Of these names there are ${#number[@]} SampleDBs for two shards, and not four."
for db in "${!number[@]}"; do
  kubectl apply -f - >/dev/null <<END
apiVersion: toban.dev/v1
kind: SampleDB
metadata: {name: $db}
spec: {version: 17, instances: 1, storage: {size: 1Gi}, backup: {none: true}}
END
done
for db in "${!number[@]}"; do
  kubectl wait "sampledb/$db" --for=condition=Ready --timeout=5m >/dev/null
  acts_on "$db" 5MB
  shard=${number[$db]}
  operator=$(kubectl -n $namespace get pods -l app.kubernetes.io/component=operator -o name |
    sed 's|^pod/||' | { if ((shard)); then grep '^toban-operator-1-'; else grep -v '^toban-operator-1-'; fi; })
  [[ $(told_by "$db") == "toban-$operator" ]] ||
    fail "Of $db, of shard $shard, events are told by:"$'\n'"$(told_by "$db")"$'\n'"and not by $operator alone."
done
all=$(instances)
[[ $(wc -l <<<"$all") -ge 6 ]] || fail "There are too few instances:"$'\n'"$all"
same 'Two shards'

say 'the operator of one shard is lost'
kubectl -n $namespace delete pod -l toban.dev/shard=1 --wait=false >/dev/null
for db in "${!number[@]}"; do
  bin/toban psql "$db" -- -Atqc 'CREATE TABLE public.kept AS SELECT 1 AS n'
done
kubectl -n $namespace rollout status deployment/toban-operator-1 --timeout=3m >/dev/null
for db in "${!number[@]}"; do
  acts_on "$db" 6MB
done
stays 'The loss of an operator'

say 'one shard again'
chart upgrade --reuse-values --set shards=1
left=$(kubectl -n $namespace get deployments -o name)
[[ $left == deployment.apps/toban-operator ]] || fail "With one shard there are the Deployments:"$'\n'"$left"
for db in "${!number[@]}"; do
  acts_on "$db" 7MB
done
stays 'One shard again'

say 'uninstall'
"$helm" uninstall toban --namespace $namespace --wait >/dev/null
for db in "${!number[@]}"; do
  [[ $(bin/toban psql "$db" -- -Atqc 'INSERT INTO public.kept VALUES (2) RETURNING n') == 2 ]] ||
    fail "$db takes no writes."
done
stays 'Uninstalling all shards'
echo 'The chart was installed, upgraded, uninstalled and installed again, with two shards and with one; the databases' \
  'ran on.'
