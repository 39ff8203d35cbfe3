#!/usr/bin/env bash
# Compiles a program of cmd/ for a release, or for here: hack/compile.sh NAME FILE [VERSION]. GOOS and GOARCH say for
# what. Without the commit in it, so that the same code is the same binary and the same image.
set -euo pipefail
cd "$(dirname "$0")/.."
CGO_ENABLED=0 exec go build -trimpath -buildvcs=false \
  -ldflags="-s -w -X main.version=${3:-development}" -o "$2" "./cmd/$1"
