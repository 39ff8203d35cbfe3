#!/usr/bin/env bash
# Tries the local Kubernetes itself: makes one, breaks it, mends it, and looks for traces of it afterwards. That needs
# root, and a machine on which none is up.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
needs_no_cluster 'how a local Kubernetes comes and goes'
go run ./hack/suite ring lifecycle
