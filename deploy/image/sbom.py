"""Build stage: prints what the image is made of, as CycloneDX 1.6 in JSON.

Usage: sbom.py ROOT FOLDER... The folders hold the packages (.deb, .whl) that were
unpacked; their hashes are in the list. Same packages, same text.
"""

import email.parser
import hashlib
import json
import os
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

STATUS = "var/lib/dpkg/status.d"
PACKAGES = "usr/lib/python3/dist-packages"
PROJECT = "node-feature-discovery"


def debian_component(field: Mapping[str, str]) -> dict[str, Any]:
    """Describe a Debian package by the fields of its control file."""
    name, version = field["Package"], field["Version"]
    architecture = field["Architecture"]
    purl = (
        f"pkg:deb/debian/{quote(name)}@{quote(version, safe='.-~')}"
        f"?arch={architecture}&distro=trixie"
    )
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
    }


def wheel_component(field: Mapping[str, str]) -> dict[str, Any]:
    """Describe a wheel by the fields of its METADATA."""
    name, version = field["Name"], field["Version"]
    purl = f"pkg:pypi/{quote(name.lower().replace('_', '-'))}@{quote(version)}"
    component: dict[str, Any] = {
        "type": "application" if name == PROJECT else "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
    }
    if expression := field.get("License-Expression"):
        component["licenses"] = [{"expression": expression}]
    elif text := field.get("License"):
        component["licenses"] = [{"license": {"name": text.partition("\n")[0]}}]
    return component


def find_components(root: str, hashes: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Describe everything that is installed below `root`."""
    folder = os.path.join(root, STATUS)
    for name in sorted(os.listdir(folder)):
        field = _fields(os.path.join(folder, name))
        key = f"{field['Package']}_{field['Version'].partition(':')[2] or field['Version']}"
        yield _with_hash(debian_component(field), hashes.get(key))
    folder = os.path.join(root, PACKAGES)
    for name in sorted(os.listdir(folder)):
        if name.endswith(".dist-info"):
            field = _fields(os.path.join(folder, name, "METADATA"))
            yield _with_hash(
                wheel_component(field), hashes.get(name.removesuffix(".dist-info"))
            )


def find_hashes(folders: Sequence[str]) -> dict[str, str]:
    """Map `name_version` of .deb files and `name-version` of wheels to SHA-256."""
    hashes = {}
    for folder in folders:
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), "rb") as file:
                digest = hashlib.sha256(file.read()).hexdigest()
            if name.endswith(".deb"):
                package, version = name.split("_")[:2]
                key = f"{package}_{version.partition('%3a')[2] or version}"
            else:
                key = "-".join(name.split("-")[:2])
            hashes[key] = digest
    return hashes


def bill(components: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Make the document; its serial number follows from its content."""
    (project,) = (c for c in components if c["name"] == PROJECT)
    parts = [c for c in components if c is not project]
    content = json.dumps(components, sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {"component": project},
        "components": parts,
        "dependencies": [
            {"ref": project["bom-ref"], "dependsOn": [c["bom-ref"] for c in parts]}
        ],
    }


def _with_hash(component: dict[str, Any], digest: str | None) -> dict[str, Any]:
    if digest:
        component["hashes"] = [{"alg": "SHA-256", "content": digest}]
    return component


def _fields(path: str) -> Mapping[str, str]:
    with open(path, encoding="utf-8") as file:
        return dict(email.parser.HeaderParser().parse(file).items())


def main(root: str, *folders: str) -> int:
    """Print the document."""
    components = list(find_components(root, find_hashes(folders)))
    print(json.dumps(bill(components), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
