#!/bin/sh
# Build stage: downloads Debian packages and wheels for one platform.
# Usage: fetch.sh amd64|arm64
set -eu
architecture=$1
case $architecture in
    amd64) machine=x86_64 ;;
    arm64) machine=aarch64 ;;
    *) echo "no wheels for the architecture $architecture" >&2; exit 1 ;;
esac

dpkg --add-architecture "$architecture"
apt-get update -q
mkdir -p /debs /wheels
cd /debs
apt-get download -q $(sed -n "s/^\([a-z].*\)/\1:$architecture/p" /build/packages)

python3 -m pip download --quiet --no-deps --require-hashes --only-binary=:all: \
    --requirement /build/requirements.txt --dest /wheels \
    --implementation cp --python-version 3.13 --abi cp313 --abi abi3 --abi none \
    --platform "manylinux_2_28_$machine" --platform "manylinux_2_17_$machine" \
    --platform "manylinux2014_$machine"
