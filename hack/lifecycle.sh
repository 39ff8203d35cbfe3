#!/usr/bin/env bash
# Tries the local Kubernetes itself: makes one, breaks it, mends it, and looks for traces of it afterwards. That needs
# root, and a machine on which none is up: a cluster that somebody uses is left alone, and the test not run.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
state=$(cluster)
if [[ $state != down ]]; then
  echo "NOT TRIED: how a local Kubernetes comes and goes, because one is $state here. For that: make down"
  exit
fi
go run ./hack/gotest -C localkube -tags cluster -count=1 -timeout 30m -run '^TestClusterLifecycle$' .
