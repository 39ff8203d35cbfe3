#!/usr/bin/env bash
# Tries the bundle for OLM in a local Kubernetes of its own, without OLM: hack/bundle/olm creates what OLM would.
# Install for all namespaces, a SampleDB, uninstall, install for one namespace. The database's Pods must stay the same
# from beginning to end. That needs root, and a machine on which no cluster is up.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
needs_no_cluster 'the bundle for OLM'
. hack/installing.sh

# install makes what OLM makes, with the arguments of hack/bundle/olm, and waits for the operator.
install() {
  go run ./hack/bundle/olm -namespace $namespace "$@" "$work/bundle" >"$work/objects.yaml"
  kubectl apply --server-side -f "$work/objects.yaml" >/dev/null
  kubectl -n $namespace rollout status deployment/toban-operator --timeout=3m >/dev/null
}

cluster_of_its_own
go run ./hack/bundle -out "$work/bundle" -version v0.0.0 -image "toban:$tag" -url https://unpublished.invalid/toban

say 'install for all namespaces, and a database'
kubectl apply -f config/manager/namespace.yaml >/dev/null
for kind in config/crd/*.yaml; do
  kubectl apply --server-side -f "$work/bundle/manifests/${kind##*/}" >/dev/null
done
install
make_database

say 'uninstall'
kubectl delete --wait -f "$work/objects.yaml" >/dev/null
kubectl -n $namespace wait --for=delete pod -l app.kubernetes.io/component=operator --timeout=1m >/dev/null
kubectl -n $namespace get secret toban-operator >/dev/null || fail 'The root secret is gone.'
sql 'INSERT INTO public.kept VALUES (2)'
same 'Uninstalling the operator'

say 'install for one namespace'
install -watch default
bound=$(kubectl get clusterrolebindings -o name | grep toban || true)
[[ $bound == *-cluster && $bound != *$'\n'* ]] ||
  fail "An operator of one namespace has more than one ClusterRole: $bound"
kubectl patch sampledb $database --type merge -p '{"spec": {"instances": 2}}' >/dev/null
ready 2
same 'Installing the operator for one namespace'
[[ $(sql 'SELECT count(*) FROM public.kept') == 2 ]] || fail 'Rows are missing.'
echo 'The bundle was installed for all namespaces, uninstalled, and installed for one; the database ran on.'
