#!/bin/sh
# Builds the image with buildah, checks it and unpacks it for a smoke test.
#
# Usage: build.sh [amd64|arm64]    (default: this machine's)
# Environment:
#   TAG     name of the image (node-feature-discovery:VERSION)
#   BASE    image that builds (debian:trixie-slim); where it cannot be had, one is made
#           by debootstrap, as root, and kept
#   UNPACK  folder for the image's files (build/image/ARCHITECTURE)
set -eu
cd "$(dirname "$0")/../.."
architecture=${1:-$(dpkg --print-architecture)}
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' nfd/_version.py)
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
seconds=$(git log -1 --format=%ct 2>/dev/null || echo 0)
tag=${TAG:-node-feature-discovery:$version}
unpack=${UNPACK:-build/image/$architecture}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/nfd-image
suite=trixie

for tool in buildah debootstrap; do
    command -v "$tool" > /dev/null && continue
    [ "$(id -u)" = 0 ] || { echo "$tool is not installed" >&2; exit 1; }
    apt-get update -q > /dev/null
    DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends \
        buildah debootstrap > /dev/null
done
export BUILDAH_ISOLATION="${BUILDAH_ISOLATION:-chroot}"

make_base() {
    if ! [ -f "$cache/$suite.tar" ]; then
        echo "making a base with debootstrap"
        mkdir -p "$cache"
        rm -rf "$cache/$suite"
        debootstrap --variant=minbase --include=ca-certificates \
            "$suite" "$cache/$suite" > "$cache/debootstrap.log"
        rm -rf "$cache/$suite"/var/cache/apt/archives/*.deb
        tar -C "$cache/$suite" -cf "$cache/$suite.tmp" .
        mv "$cache/$suite.tmp" "$cache/$suite.tar"
        rm -rf "$cache/$suite"
    fi
    container=$(buildah from scratch)
    buildah add -q "$container" "$cache/$suite.tar" / > /dev/null
    buildah commit -q --rm "$container" "$1" > /dev/null
}

base=${BASE:-}
if [ -z "$base" ]; then
    base=localhost/nfd-base:$suite
    if buildah pull -q "debian:$suite-slim" > /dev/null 2>&1; then
        base=debian:$suite-slim
    elif ! buildah inspect "$base" > /dev/null 2>&1; then
        make_base "$base"
    fi
fi

echo "building $tag for $architecture on $base"
# The certificates of this machine, so that a network with its own authority works.
buildah build --layers --file deploy/image/Containerfile --tag "$tag" \
    --volume /etc/ssl/certs:/etc/ssl/certs:ro \
    --build-arg BASE="$base" --build-arg TARGETARCH="$architecture" --build-arg VERSION="$version" \
    --build-arg REVISION="$revision" --build-arg SOURCE_DATE_EPOCH="$seconds" \
    --build-arg CREATED="$(date -u -d "@$seconds" +%Y-%m-%dT%H:%M:%SZ)" .

rm -rf "$unpack"
mkdir -p "$unpack"
container=$(buildah from "$tag")
if [ "$architecture" != "$(dpkg --print-architecture)" ]; then
    # Older versions of buildah pull the base for the platform of the result, not for
    # the one that builds. So it is built as this machine's, and the name put right.
    buildah config --arch "$architecture" "$container"
    buildah commit -q "$container" "$tag" > /dev/null
fi
mounted=$(buildah mount "$container")
cp -a "$mounted/." "$unpack/"
buildah rm "$container" > /dev/null
python3 deploy/image/check.py "$unpack"
