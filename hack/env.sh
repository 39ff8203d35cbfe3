# shellcheck shell=bash
# Sourced by the scripts that use the local Kubernetes: its kubeconfig, and its
# kubectl before the machine's, because it is of the cluster's version.
. hack/go.sh
export KUBECONFIG=$PWD/.local/kubeconfig PATH=$PWD/.local/bin:$PATH

# cluster prints up, partial or down.
cluster() { bin/localkube status -o json | sed -n 's/^ *"cluster": "\(.*\)",$/\1/p'; }

# needs_no_cluster WHAT fails a script that makes a cluster of its own where one is up: that may be somebody's. With
# TOBAN_LEAVE_OUT_OWN_CLUSTER=yes such scripts are left out there, and do not fail.
needs_no_cluster() {
  local state
  state=$(cluster)
  [[ $state != down ]] || return 0
  echo "NOT TRIED: $1, because a local Kubernetes is ${state:-in an unknown state} here. For that: make down" >&2
  [[ ${TOBAN_LEAVE_OUT_OWN_CLUSTER:-} == yes ]] || exit 1
  exit 77 # left out: neither a failure nor a success
}
