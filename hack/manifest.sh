#!/usr/bin/env bash
# Prints config/install.yaml, or another manifest, with another image of the operator, wherever it names it:
# hack/manifest.sh IMAGE [FILE]. The image may be named by its digest: toban@sha256:….
set -euo pipefail
cd "$(dirname "$0")/.."
file=${2:-config/install.yaml}
current=$(sed -nE 's/^ *(- )?image: "?([^" ]+)"?$/\2/p' "$file" | head -n 1)
if [[ -z $current ]]; then
  echo "$file names no image" >&2
  exit 1
fi
sed "s|$current|$1|g" "$file"
