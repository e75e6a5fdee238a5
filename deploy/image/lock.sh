#!/bin/sh
# Prints requirements.txt: the newest versions that pyproject.toml allows, with the
# hashes of their wheels for both platforms. Run it at the root of the repository.
set -eu
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
python3 - > "$wheels/wanted" <<'PYTHON'
import tomllib

project = tomllib.load(open("pyproject.toml", "rb"))["project"]
extras = project["optional-dependencies"]
print(*project["dependencies"], *extras["agents"], *extras["nvml"], sep="\n")
PYTHON
for machine in x86_64 aarch64; do
    python3 -m pip download --quiet --dest "$wheels" --requirement "$wheels/wanted" \
        --only-binary=:all: --implementation cp --python-version 3.13 \
        --abi cp313 --abi abi3 --abi none \
        --platform "manylinux_2_28_$machine" --platform "manylinux_2_17_$machine" \
        --platform "manylinux2014_$machine"
done
echo "# Made by lock.sh: what the image holds, with the hashes of both platforms."
cd "$wheels"
for wheel in *.whl; do
    name=${wheel%%-*} rest=${wheel#*-}
    echo "$name==${rest%%-*} $(sha256sum "$wheel" | cut -d' ' -f1)"
done | sort | awk '
    $1 != last { if (last) print ""; printf "%s", $1; last = $1 }
    { printf " \\\n    --hash=sha256:%s", $2 }
    END { print "" }'
