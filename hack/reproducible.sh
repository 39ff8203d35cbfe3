#!/usr/bin/env bash
# Builds the program and its container image twice, in two folders, and fails where they differ: who builds a release
# again must get the same bytes. Needs bin/localkube. With --whole nothing that was compiled before is used, which takes
# many minutes: also what Go's build cache would hide is found then. With --release it makes a whole release twice.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# build FOLDER builds from a copy of the sources there, and makes the image with a cache of its own.
build() {
  local folder=$1
  mkdir -p "$folder/source"
  git ls-files -co --exclude-standard -z -- Makefile hack/compile.sh api cmd internal go.mod go.sum |
    while IFS= read -r -d '' f; do [[ ! -e $f ]] || printf '%s\0' "$f"; done |
    tar c --null -T - | tar x -m -C "$folder/source"
  if [[ ${whole:-} ]]; then
    export GOCACHE=$folder/gocache
  fi
  make -s --no-print-directory -C "$folder/source" bin/toban
  XDG_CACHE_HOME=$folder/images bin/localkube image binary --name toban:reproduced \
    --binary "$folder/source/bin/toban" >"$folder/tar"
}

# same WHAT FILE… fails where files differ.
same() {
  local what=$1 digests
  shift
  digests=$(sha256sum "$@" | cut -d ' ' -f 1 | sort -u)
  if [[ $(wc -l <<<"$digests") -ne 1 ]]; then
    echo "The same sources gave different ${what}s:" >&2
    sha256sum "$@" >&2
    return 1
  fi
  echo "the $what, twice: sha256:$digests"
}

# releases makes a release twice, in two folders. Programs that were compiled for the first are used for the second.
releases() {
  local at
  for at in one two; do
    DIST=$work/$at hack/release.sh v0.0.0-reproduced
  done
  same release "$work"/one/SHA256SUMS "$work"/two/SHA256SUMS
}

if [[ ${1:-} == --release ]]; then
  releases
  exit
fi
[[ ${1:-} != --whole ]] || whole=yes
(build "$work/a")
(build "$work/a/longer/name")
same program "$work"/a/source/bin/toban "$work"/a/longer/name/source/bin/toban
same image "$(cat "$work/a/tar")" "$(cat "$work/a/longer/name/tar")"
