#!/usr/bin/env bash
# Runs a ring of tests that make a local Kubernetes of their own: hack/owncluster.sh RING [FLAG…], where flags are
# those of go test. That needs root, and a machine on which none is up: one that is may be somebody's, and this fails then.
# With TOBAN_LEAVE_OUT_OWN_CLUSTER=yes it is left out there, and does not fail.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh

state=$(cluster)
if [[ $state != down ]]; then
  echo "NOT TRIED: the ring $1, because a local Kubernetes is ${state:-in an unknown state} here. For that:" \
    'make down' >&2
  [[ ${TOBAN_LEAVE_OUT_OWN_CLUSTER:-} == yes ]] || exit 1
  exit 77 # left out: neither a failure nor a success
fi
go run ./hack/suite ring "$@"
