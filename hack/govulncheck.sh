#!/usr/bin/env bash
# Looks in Go's database whether bin/toban has a function with a known vulnerability, and fails where it has. Where the
# database can't be reached it says so, and that nothing was looked at. GOVULNDB is another database.
set -euo pipefail
cd "$(dirname "$0")/.."
database=${GOVULNDB:-https://vuln.go.dev}
if ! reason=$(curl -fsS --max-time 20 -o /dev/null "$database/index/db.json" 2>&1); then
  echo "NOT LOOKED FOR VULNERABILITIES: $database can't be reached: $reason"
  exit
fi
tool=$(hack/tool.sh govulncheck)
"$tool" -db "$database" -mode binary bin/toban
