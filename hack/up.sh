#!/usr/bin/env bash
# Starts the local Kubernetes with the operator in it, or brings a running one up
# to date with what is in bin/. Every step may be done already.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
mkdir -p .local

# stage NAME COMMAND… runs a command, says how long it took, and keeps that for the demo.
: >.local/timings
stage() {
  local name=$1 from=$EPOCHREALTIME seconds
  shift
  "$@"
  seconds=$(awk "BEGIN {printf \"%.1f\", $EPOCHREALTIME - $from}")
  echo "$name	$seconds" >>.local/timings
  printf '%-34s %6s s\n' "$name" "$seconds"
}

images() {
  local tars
  tars=$(hack/images.sh)
  mapfile -t tars <<<"$tars"
  bin/localkube load "${tars[@]}"
}

operator() {
  local tag
  tag=$(sha256sum bin/toban | cut -c1-12)
  hack/manifest.sh "toban:$tag" | kubectl apply --server-side --force-conflicts -f config/crds.yaml -f - >/dev/null
  kubectl -n toban-system rollout status deployment/toban-operator --timeout=180s >/dev/null
}

mkdir -p .local/bin
ln -sf "$PWD/bin/toban" .local/bin/kubectl-toban # kubectl has the command toban
stage 'Kubernetes, three nodes ready' bin/localkube up
stage 'images on every node' images
stage 'operator available' operator

[[ ${1:-} == --quiet ]] || cat <<TEXT

A Kubernetes with the operator is running. To use it:

  export KUBECONFIG=$PWD/.local/kubeconfig PATH=$PWD/.local/bin:\$PATH
  kubectl apply -f config/examples/example-database.yaml
  kubectl get SampleDB

make demo shows what it does; make down removes it all.
TEXT
