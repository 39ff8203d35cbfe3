#!/usr/bin/env bash
# Makes all that a release has, in dist/: hack/release.sh VERSION [REGISTRY [URL]]. Nothing is sent anywhere. With a
# REGISTRY, the manifests, the chart and the bundle for OLM name the operator's image there; with a URL, krew's
# manifest and the bundle say that the files will be below it. The same sources and the same Go give the same bytes
# (hack/reproducible.sh --release). Needs bin/localkube. DIST is another folder than dist.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/go.sh
version=${1:-} registry=${2:-} url=${3:-}
dist=${DIST:-dist}
if ! [[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; then
  echo 'Say which one: make release VERSION=v0.2.0' >&2
  exit 2
fi
# What is not published has a name that nobody can own (RFC 2606), so that nothing of somebody else is pulled.
image=${registry:-unpublished.invalid}/toban
url=${url:-https://unpublished.invalid/toban/$version}
umask 022
rm -rf "$dist"
mkdir -p "$dist"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# pack TAR FOLDER makes the same archive of the same files, whoever packs them, whenever.
pack() {
  local files=("$2"/*)
  tar c --sort=name --format=ustar --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r,go-w \
    -C "$2" -- "${files[@]##*/}" | gzip -9n >"$1"
}

# program NAME OS ARCH compiles a program and packs it; its file stays in the work folder.
program() {
  local name=$1 os=$2 arch=$3 folder=$work/$1-$2-$3 file=$1
  [[ $os != windows ]] || file+=.exe
  echo "$name for $os/$arch" >&2
  mkdir "$folder"
  GOOS=$os GOARCH=$arch hack/compile.sh "$name" "$folder/$file" "$version"
  cp LICENSE CHANGELOG.md "$folder/"
  pack "$dist/$name-$version-$os-$arch.tar.gz" "$folder"
}

# manifest FILE prints a file of config that names the release's image.
manifest() {
  if [[ -z $registry ]]; then
    echo "# NOTHING IS PUBLISHED: this release was made without a registry, and nodes can't pull the image below."
    echo "# Push it to a registry of yours, and put that in the place of unpublished.invalid (docs/install.md)."
  fi
  hack/manifest.sh "$image@$digest" "config/$1"
}

# bundle writes the OLM bundle, and its image, whose labels are the bundle's annotations.
bundle() {
  local labels
  go run ./hack/bundle -out "$dist/bundle" -version "$version" -image "$image@$digest" -url "$url"
  labels=$(sed -n 's/^  \([^ #]*\): \(.*\)$/--label=\1=\2/p' "$dist/bundle/metadata/annotations.yaml")
  [[ -n $labels ]] || { echo 'The bundle has no annotations for the labels of its image.' >&2; return 1; }
  mapfile -t labels <<<"$labels"
  bin/localkube image files --name "toban-bundle:$version" --out "$dist/toban-$version-bundle-image.tar" \
    "${labels[@]}" "$dist/bundle" >&2
}

for arch in amd64 arm64; do
  program toban linux "$arch"
  hack/sbom.sh "$work/toban-linux-$arch/toban" "$version" "$dist/toban-$version-linux-$arch.cdx.json"
done
for platform in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64; do
  program kubectl-toban "${platform%/*}" "${platform#*/}"
done
hack/krew.sh "$version" "$url" "$dist"/kubectl-toban-*.tar.gz >"$dist/toban.yaml"

digest=$(bin/localkube image index --name "toban:$version" --out "$dist/toban-$version-image.tar" \
  --description 'Toban, a Kubernetes operator for PostgreSQL' "$work"/toban-linux-{amd64,arm64}/toban)
cp config/crds.yaml "$dist/"
manifest install.yaml >"$dist/install.yaml"
manifest install-namespaced.yaml >"$dist/install-namespaced.yaml"
go run ./hack/chart -out "$work/chart/toban" -version "$version" -repository "$image" -digest "$digest"
pack "$dist/toban-$version.tgz" "$work/chart"
bundle
cp CHANGELOG.md "$dist/"
(cd "$dist" && find . -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum -- >"$work/SHA256SUMS")
mv "$work/SHA256SUMS" "$dist/"
echo "$dist has the release $version, whose image is $image@$digest"
