#!/usr/bin/env bash
# Pushes the operator's image, PostgreSQL's and the examples' to a registry and prints the
# command that installs the operator from there. Log in before, with docker
# login or podman login. The manifests name the operator's image by its digest, so that nobody can
# put another image in its place.
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
if [[ ${names[0]} != *@sha256:* ]]; then
  echo "The operator's image was pushed without a digest: ${names[0]}" >&2
  exit 1
fi
for file in install.yaml install-namespaced.yaml; do
  hack/manifest.sh "${names[0]}" "config/$file" >".local/$file"
done
printf '%s\n' "${names[@]}"
echo
echo 'This installs the operator from there:'
echo '  kubectl apply --server-side -f config/crds.yaml -f .local/install.yaml'
