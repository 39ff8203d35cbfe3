#!/usr/bin/env bash
# Prints the manifest with which krew installs the plugin of a release: hack/krew.sh VERSION URL ARCHIVE…, where the
# archives will be below the URL.
set -euo pipefail
version=$1 url=$2
shift 2
(($# > 0)) || { echo 'krew.sh: there is no archive to install from' >&2; exit 2; }
cat <<END
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: toban
spec:
  version: $version
  shortDescription: Operate PostgreSQL databases of Toban
  description: |
    Shows what state a SampleDB is in and why, and does what its operator leaves to people: switchovers, backups,
    restores, upgrades, drills.
  platforms:
END
for archive; do
  [[ $archive =~ -(linux|darwin|windows)-([a-z0-9]+)\.tar\.gz$ ]]
  os=${BASH_REMATCH[1]} arch=${BASH_REMATCH[2]}
  program=kubectl-toban
  [[ $os != windows ]] || program+=.exe
  cat <<END
    - selector:
        matchLabels: {os: $os, arch: $arch}
      uri: $url/$(basename "$archive")
      sha256: $(sha256sum "$archive" | cut -d ' ' -f 1)
      bin: $program
END
done
