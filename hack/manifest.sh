#!/usr/bin/env bash
# Prints config/install.yaml with another image of the operator.
set -euo pipefail
cd "$(dirname "$0")/.."
image=$1
sed -E "s|ghcr\.io/toban-dev/toban:[A-Za-z0-9._-]+|$image|g" config/install.yaml | grep -q "$image" ||
  { echo "config/install.yaml does not name the operator's image as expected" >&2; exit 1; }
sed -E "s|ghcr\.io/toban-dev/toban:[A-Za-z0-9._-]+|$image|g" config/install.yaml
