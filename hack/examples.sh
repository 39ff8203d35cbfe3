#!/usr/bin/env bash
# Makes the images of the examples' application, the guest book in its three
# versions, and prints their tars' paths. make examples brings them to the nodes.
set -euo pipefail
cd "$(dirname "$0")/.."
for version in 1 2 3; do
  program=.local/guestbook-$version/guestbook
  CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags="-s -w -X main.version=$version" \
    -o "$program" ./examples/guestbook
  bin/localkube image binary --name "guestbook:$version" --binary "$program" \
    --description 'An application for examples of Toban'
done
