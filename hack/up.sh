#!/usr/bin/env bash
# Starts the local Kubernetes with the operator in it, or brings a running one up
# to date with what is in bin/. Every step may be done already. --quiet leaves out
# what to do next, --few-images those that the demo does not
# need: nginx of config/examples/sample-app.yaml, and PgBouncer of spec.pooler.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
mkdir -p .local

quiet='' more=(nginx:1.25 pgbouncer:1.24)
for option; do
  case $option in
    --quiet) quiet=yes ;;
    --few-images) more=() ;;
    *)
      echo "hack/up.sh has no option $option: it has --quiet and --few-images" >&2
      exit 2
      ;;
  esac
done

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
  bin/localkube load "${tars[@]}" "${more[@]}"
}

operator() {
  local tag
  tag=$(sha256sum bin/toban | cut -c1-12)
  go run ./hack/release manifest "toban:$tag" |
    kubectl apply --server-side --force-conflicts -f config/crds.yaml -f - >/dev/null
  kubectl -n toban-system rollout status deployment/toban-operator --timeout=180s >/dev/null
}

mkdir -p .local/bin
ln -sf "$PWD/bin/toban" .local/bin/kubectl-toban # kubectl has the command toban
ln -sf "$PWD/bin/toban" .local/bin/kubectl_complete-toban # and completes its words
stage 'Kubernetes, three nodes ready' bin/localkube up
stage 'images on every node' images
stage 'operator available' operator

[[ -n $quiet ]] || cat <<TEXT

A Kubernetes with the operator is running. To use it:

  export KUBECONFIG=$PWD/.local/kubeconfig PATH=$PWD/.local/bin:\$PATH
  kubectl apply -f config/examples/example-database.yaml -f config/examples/sample-app.yaml
  kubectl get SampleDB,MyApp

make demo shows what it does; make down removes it all.
TEXT
