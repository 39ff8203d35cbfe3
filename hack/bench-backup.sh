#!/usr/bin/env bash
# Measures backups, restores and the archive against the machine's own limits, pg_basebackup and pgBackRest, on
# PostgreSQL of this machine: hack/bench-backup.sh -n 5 -scale 300. Prints tables, and writes a plot to PLOT, by default
# .local/bench-backup.svg.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v pgbackrest >/dev/null || { apt-get update && apt-get install -y --no-install-recommends pgbackrest; } >&2
# PostgreSQL refuses to run as root, and its user may not get at this folder.
program=$(mktemp -d /var/tmp/toban-bench-program.XXXXXX)/backup
trap 'rm -rf "$(dirname "$program")"' EXIT
go build -o "$program" ./test/bench/backup
chmod 755 "$(dirname "$program")"
plot=$(realpath -m "${PLOT:-.local/bench-backup.svg}")
install -o postgres -m 600 /dev/null "$program.svg"
cd /
runuser -u postgres -- "$program" -plot "$program.svg" "$@"
install -D -m 644 "$program.svg" "$plot"
echo "the plot: $plot" >&2
