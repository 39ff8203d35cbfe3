# shellcheck shell=bash
# Sourced by the scripts that call go: one set of flags for programs, tests and the linter, so that what they have in
# common is compiled once for all of them, and for all copies of the repository on a machine.
export CGO_ENABLED=0 GOFLAGS
GOFLAGS=$(go env GOFLAGS)
[[ " $GOFLAGS " == *' -trimpath '* ]] || GOFLAGS+=' -trimpath'
