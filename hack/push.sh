#!/usr/bin/env bash
# Pushes the operator's image, PostgreSQL's and the examples' to a registry and prints the
# command that installs the operator from there. Log in before, with docker
# login or podman login.
set -euo pipefail
cd "$(dirname "$0")/.."
registry=${1:-}
if [[ -z $registry ]]; then
  echo 'Say where to: make push REGISTRY=registry.example.com/team' >&2
  exit 2
fi
# Not read from a process substitution, whose failure would go unnoticed.
tars=$(hack/images.sh postgres:15 postgres:17 postgres:18)
examples=$(hack/examples.sh)
mapfile -t tars <<<"$tars"$'\n'"$examples"
names=$(bin/localkube image push --registry "$registry" "${tars[@]}")
mapfile -t names <<<"$names"
mkdir -p .local
hack/manifest.sh "${names[0]}" >.local/install.yaml
printf '%s\n' "${names[@]}"
echo
echo 'This installs the operator from there:'
echo '  kubectl apply --server-side -f config/crds.yaml -f .local/install.yaml'
