#!/usr/bin/env bash
# Prints config/install.yaml with another image of the operator, wherever it
# names it.
set -euo pipefail
cd "$(dirname "$0")/.."
current=$(sed -nE 's/^ *(- )?image: "?([^" ]+)"?$/\2/p' config/install.yaml | head -n 1)
if [[ -z $current ]]; then
  echo 'config/install.yaml names no image' >&2
  exit 1
fi
sed "s|$current|$1|g" config/install.yaml
