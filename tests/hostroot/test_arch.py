"""The architecture of captures."""

from pathlib import Path

import pytest

from nfd.hostroot import HostRoot
from nfd.hostroot.arch import of_cpuinfo

# As the README beside the archives says; "" where no file of the archive tells.
ARCHES = {
    "arm64-hpe-rl300-altra": "aarch64",
    "arm64-huawei-xa320-128c": "aarch64",
    "kernel-debian12-cloud": "x86_64",
    "loongarch64-3a5000": "loongarch64",
    "ppc64-power7-8node": "ppc64",
    "ppc64le-ibm-power8": "ppc64le",
    "riscv64-visionfive2": "riscv64",
    "s390x-lpar-drawer": "s390x",
    "x86-dgx-station-dmi": "",
    "x86-lsmem-16g": "",
}
WITHOUT_A_HOST = {"amd-kfd", "cpuid-hwloc", "cpuid-libcpuid", "cpuinfo-archspec"}


def test_every_shared_archive(shared_dir: Path) -> None:
    seen = {}
    wanted = {}
    for archive in sorted((shared_dir / "hosts").glob("*.tar.xz")):
        name = archive.name.removesuffix(".tar.xz")
        if name in WITHOUT_A_HOST:
            continue
        wanted[name] = ARCHES.get(name, "x86_64")
        with HostRoot.open(str(archive)) as host:
            seen[name] = host.arch

    assert wanted == seen


def test_shared_cpuinfo_files(shared_dir: Path) -> None:
    archive = shared_dir / "hosts" / "cpuinfo-archspec.tar.xz"
    with HostRoot.open(str(archive)) as host:
        names = host.listdir("/")
        seen = {name: of_cpuinfo(host.read(f"/{name}")) for name in names}

    assert "" not in seen.values()
    assert {"aarch64", "ppc64", "ppc64le", "riscv64", "x86_64"} == set(seen.values())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("processor\t: 0\nvendor_id\t: GenuineIntel\n", "x86_64"),
        ("vendor_id       : IBM/S390\n", "s390x"),
        ("hart\t: 1\nisa\t\t: rv64imafdc\n", "riscv64"),
        ("isa\t: rv32imac\n", "riscv32"),
        ("CPU architecture: 8\n", "aarch64"),
        ("CPU architecture: 7\n", "armv7l"),
        ("cpu\t\t: POWER9, altivec supported\n", "ppc64le"),
        ("cpu\t\t: POWER7 (architected), altivec supported\n", "ppc64"),
        ("cpu\t\t: POWER10 (raw)\n", "ppc64le"),
        (
            "CPU Family\t\t: Loongson-64bit\nISA\t\t\t: loongarch32 loongarch64\n",
            "loongarch64",
        ),
        ("", ""),
        ("something else\n", ""),
    ],
)
def test_cpuinfo(text: str, expected: str) -> None:
    assert expected == of_cpuinfo(text)


def test_a_recorded_word_wins(tmp_path: Path) -> None:
    for path, text in (
        (".nfd/uname", "Linux riscv64\n"),
        ("proc/cpuinfo", "vendor_id: GenuineIntel\n"),
    ):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)

    assert HostRoot(str(tmp_path)).arch == "riscv64"
