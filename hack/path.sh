#!/usr/bin/env bash
# Makes FOLDER have links to the programs of Debian's base system and of packages, with all that these depend on, and to
# no others. Prints the PATH of them and of Go: PATH=$(hack/path.sh FOLDER PACKAGE…).
# Tests run with it: a program that somebody installed by hand is missing there, as it is on a fresh machine.
set -euo pipefail
if ! command -v dpkg-query >/dev/null || ! command -v apt-cache >/dev/null; then
  echo 'There is no dpkg here to say which packages programs are of: all programs are used.' >&2
  echo "$PATH"
  exit
fi
go=$(go env GOROOT)/bin
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
folder=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What no Debian is without, the packages named, and what these depend on: as far as it is installed.
dpkg-query -W -f '${db:Status-Status} ${Package} ${Essential} ${Priority}\n' |
  sed -n 's/^installed //p' >"$work/installed"
awk '$2 == "yes" || $NF == "required" { print $1 }' "$work/installed" >"$work/wanted"
printf '%s\n' "$@" >>"$work/wanted"
among_installed() { awk 'NR == FNR { installed[$1]; next } $1 in installed' "$work/installed" -; }
among_installed <"$work/wanted" |
  xargs apt-cache depends --recurse --installed --no-recommends --no-suggests --no-conflicts \
    --no-breaks --no-replaces --no-enhances |
  among_installed >"$work/packages"

# A program counts where its file is a package's: links of update-alternatives are in no package.
xargs dpkg-query -L <"$work/packages" | grep -E '^(/usr)?/s?bin/' | xargs -d '\n' realpath -m >"$work/declared"
candidates=(/usr/sbin/* /usr/bin/* /sbin/* /bin/*)
printf '%s\n' "${candidates[@]}" >"$work/paths"
realpath -m -- "${candidates[@]}" | paste - "$work/paths" | awk -F '\t' '
  NR == FNR { declared[$1]; next }
  { name = $2; sub(".*/", "", name) }
  $1 in declared && !(name in seen) { seen[name]; print $2 }
' "$work/declared" - >"$work/programs"

# The folder may be the PATH of what runs now: links are added before others are removed.
mkdir -p "$folder"
xargs -d '\n' ln -sf -t "$folder" -- <"$work/programs"
comm -13 <(sed 's|.*/||' "$work/programs" | sort) <(find "$folder" -mindepth 1 -printf '%f\n' | sort) |
  (cd "$folder" && xargs -r -d '\n' rm -f --)
echo "$folder:$go"
