#!/usr/bin/env bash
# Builds a program of tools/NAME/go.mod, unless the same version has been built
# before, and prints its path. What a tool needs stays out of our own go.mod.
set -euo pipefail
cd "$(dirname "$0")/../tools/$1"
name=$1
package=$(sed -n 's/^tool //p' go.mod)
hash=$( { cat go.mod go.sum; go version; } | sha256sum | cut -c1-16)
program=${XDG_CACHE_HOME:-$HOME/.cache}/toban/$name-$hash
if [[ ! -x $program ]]; then
  echo "building $name (once)" >&2
  mkdir -p "$(dirname "$program")"
  CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$program.$$" "$package"
  mv "$program.$$" "$program"
fi
echo "$program"
