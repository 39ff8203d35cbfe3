#!/usr/bin/env bash
# Writes bin/toban.cdx.json: what bin/toban is made of, in the format CycloneDX, read from the binary itself. The same
# binary gives the same file: it has no time in it and no serial number.
set -euo pipefail
cd "$(dirname "$0")/.."
tool=$(hack/tool.sh cyclonedx-gomod)
version=$(bin/toban version | cut -d ' ' -f 2)
"$tool" bin -json -std -noserial -version "$version" bin/toban |
  jq --sort-keys 'del(.metadata.timestamp, .metadata.tools[].hashes)' >bin/toban.cdx.json.new
mv bin/toban.cdx.json.new bin/toban.cdx.json
echo "bin/toban.cdx.json: $(jq '.components | length' bin/toban.cdx.json) modules"
