#!/usr/bin/env bash
# Makes the operator's image and PostgreSQL's, and prints their tars' paths, the
# operator's first. The tag of the operator's is a hash of its binary: a new
# build is a new image, and an old one is never taken for it.
set -euo pipefail
cd "$(dirname "$0")/.."
tag=$(sha256sum bin/toban | cut -c1-12)
bin/localkube image binary --name "toban:$tag" --binary bin/toban \
  --description 'Toban, a Kubernetes operator for PostgreSQL'
bin/localkube image build "${@:-postgres:17}"
