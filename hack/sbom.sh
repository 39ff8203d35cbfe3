#!/usr/bin/env bash
# Writes what a program is made of, in the format CycloneDX, read from the binary itself: hack/sbom.sh [BINARY VERSION
# FILE]; without them of bin/toban to bin/toban.cdx.json. The same binary gives the same file: it has no time in it and
# no serial number.
set -euo pipefail
cd "$(dirname "$0")/.."
tool=$(hack/tool.sh cyclonedx-gomod)
binary=${1:-bin/toban}
version=${2:-$(bin/toban version | cut -d ' ' -f 2)}
out=${3:-bin/toban.cdx.json}
"$tool" bin -json -std -noserial -version "$version" "$binary" |
  jq --sort-keys 'del(.metadata.timestamp, .metadata.tools[].hashes)' >"$out.new"
modules=$(jq '.components | length' "$out.new")
((modules > 0)) || { echo "no modules were found in $binary" >&2; exit 1; }
mv "$out.new" "$out"
echo "$out: $modules modules"
