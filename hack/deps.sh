#!/usr/bin/env bash
# Installs the Debian packages that building and the demo need, where they are
# missing; with "tests", those that only tests need as well, with "race" those of
# Go's race detector, and with "clients" the drivers of test/clients. With --list
# it prints all of them, one per line. localkube has its own, which it installs
# when it needs them: bin/localkube packages prints those.
set -euo pipefail

# program or file, and the package that has it
needs=(
  'make make'
  'git git'
  '/etc/ssl/certs/ca-certificates.crt ca-certificates'
  'psql postgresql-client'                      # the demo and the tests from outside
  'zstd zstd'                                   # the way back by hand (docs/restore.md), and its test
  'age age'
  'jq jq'
  'curl curl'
  'patchelf patchelf'                           # tests with PostgreSQL of a newer release (test/releases)
)
# Tests with real servers, and pgbench: the release's own PostgreSQL, unless there is another.
server='- postgresql'
tests=(
  'node nodejs'                                 # Azure's emulator (test/stores), the search of the site (hack/site)
  'npm npm'
  'shellcheck shellcheck'
  'promtool prometheus'                         # the alerts and dashboards (test/monitoring)
  'chromium chromium'                           # the story of the web console (test/e2e)
)
race=(
  'gcc gcc'
  '/usr/include/stdlib.h libc6-dev'
)
clients=(
  '/usr/lib/python3/dist-packages/psycopg python3-psycopg'
  '/usr/share/java/postgresql.jar libpostgresql-jdbc-java'
  '/usr/share/java/HikariCP.jar libhikaricp-java'
  '/usr/share/java/slf4j-nop.jar libslf4j-java'
  'javac default-jdk-headless'
  'npm npm'                                     # which brings node, and then node-postgres
)

if [[ ${1:-} == --list ]]; then
  printf '%s\n' "${needs[@]}" "$server" "${tests[@]}" "${race[@]}" "${clients[@]}" | cut -d ' ' -f 2
  exit
fi
[[ ${1:-} != tests ]] || needs+=("${tests[@]}")
[[ ${1:-} != race ]] || needs+=("${race[@]}")
[[ ${1:-} != clients ]] || needs+=("${clients[@]}")
compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || needs+=("$server")

there() {
  case $1 in
    /*) [[ -e $1 ]] ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

missing=()
for need in "${needs[@]}"; do
  read -r program package <<<"$need"
  there "$program" || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

install="apt-get install -y --no-install-recommends ${missing[*]}"
if ! command -v apt-get >/dev/null || [[ $(id -u) -ne 0 ]]; then
  echo "These are missing: ${missing[*]}. As root on Debian, this installs them: $install" >&2
  exit 1
fi
echo "installing what is missing: ${missing[*]}" >&2
# Debian's PostgreSQL starts a server of its own unless it is told not to.
if [[ ! -e /etc/postgresql-common/createcluster.conf ]]; then
  mkdir -p /etc/postgresql-common
  echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
# Packages being installed call programs of their own.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
if ! { apt-get update && $install; } >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
