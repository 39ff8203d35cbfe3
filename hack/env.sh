# shellcheck shell=bash
# Sourced by the scripts that use the local Kubernetes: its kubeconfig, and its
# kubectl before the machine's, because it is of the cluster's version.
. hack/go.sh
export KUBECONFIG=$PWD/.local/kubeconfig PATH=$PWD/.local/bin:$PATH

# cluster prints up, partial or down.
cluster() { bin/localkube status -o json | sed -n 's/^ *"cluster": "\(.*\)",$/\1/p'; }
