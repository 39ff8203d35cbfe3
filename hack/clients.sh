#!/usr/bin/env bash
# Builds the clients of test/clients into .local/clients, with the drivers that they use: those of Debian, and
# node-postgres from npm.
set -euo pipefail
cd "$(dirname "$0")/.."
hack/deps.sh clients
out=.local/clients
pg=8.23.1
mkdir -p "$out"
if [[ ! -e $out/node_modules/pg-$pg ]]; then
  npm install --prefix "$out" --no-audit --no-fund --ignore-scripts "pg@$pg" >&2
  touch "$out/node_modules/pg-$pg"
fi
cp test/clients/client.js test/clients/client.py "$out/"
javac -cp /usr/share/java/HikariCP.jar -d "$out" test/clients/Client.java
go build -o "$out/gosql" ./test/clients/gosql
