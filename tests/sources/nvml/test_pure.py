"""Names, capability bytes, settings and versions, on texts and bytes."""

import pytest

from nfd.config.decode import decode
from nfd.errors import ConfigError
from nfd_sources._sanitize import distinct, fit, hyphenated, label_text
from nfd_sources.nvml.mig import profile_name, resource_name
from nfd_sources.nvml.reading import family, normal_address
from nfd_sources.nvml.settings import NvmlSettings, Sharing
from nfd_sources.nvml.vgpu import HostDriver, host_driver


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("some ( thing )else", "some-thing-else"),
        ("NVIDIA-TITAN-X-(Pascal)", "NVIDIA-TITAN-X-Pascal"),
        ("some [ / thing / ]else", "some-thing-else"),
        ("some(thing)else", "somethingelse"),
        (" input  with multiple   spaces   ", "input-with-multiple-spaces"),
        ("keeps.dots_and-dashes", "keeps.dots_and-dashes"),
        ("größe", "gre"),
    ],
)
def test_hyphenated(text: str, expected: str) -> None:
    assert hyphenated(text) == expected


def test_runs_of_unfit_characters() -> None:
    assert label_text("a (b)/c") == "a_b_c"


def test_fit_cuts_and_stays_distinct() -> None:
    """Edges are trimmed, also those that a cut lays bare."""
    one, two = "a" * 53 + "-" * 20 + "x", "a" * 53 + "-" * 20 + "y"

    assert fit("--ok--") == "ok"
    assert fit("a" * 63) == "a" * 63
    assert len(fit(one)) <= 63
    assert fit(one) != fit(two)
    assert fit(one)[:54] == "a" * 53 + "-"
    assert fit(one)[54] != "-"
    assert distinct("", "()") != distinct("", "[]")


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ((1, 1, "", 4864, 40536), "1g.5gb"),
        ((1, 1, "+me", 4864, 40536), "1g.5gb+me"),
        ((1, 1, "", 9856, 40536), "1g.10gb"),
        ((2, 2, "", 9856, 40536), "2g.10gb"),
        ((3, 3, "", 19968, 40536), "3g.20gb"),
        ((1, 3, "", 19968, 40536), "1c.3g.20gb"),
        ((7, 7, "", 40192, 40536), "7g.40gb"),
        ((1, 1, "", 9856, 81251), "1g.10gb"),
        ((7, 7, "", 80384, 81251), "7g.80gb"),
        ((1, 1, "", 23552, 184320), "1g.45gb"),
        ((3, 3, "", 20096, 40536), "3g.20gb"),
    ],
)
def test_profile_names(case: tuple[int, int, str, int, int], expected: str) -> None:
    ci, gi, attribute, mib, total_mib = case

    assert profile_name(ci, gi, attribute, mib, total_mib << 20) == expected


def test_halves_are_rounded_up() -> None:
    """An eighth of 180 GiB is 22.5: B200's profile is 1g.23gb."""
    assert profile_name(1, 1, "", 23040, 184320 << 20 >> 20 << 20) == "1g.23gb"
    assert resource_name("1g.23gb+me.all") == "1g.23gb.me.all"


@pytest.mark.parametrize(
    ("capability", "expected"),
    [
        ((1, 3), "tesla"),
        ((2, 0), "fermi"),
        ((3, 5), "kepler"),
        ((4, 0), "undefined"),
        ((5, 2), "maxwell"),
        ((6, 1), "pascal"),
        ((7, 0), "volta"),
        ((7, 2), "volta"),
        ((7, 5), "turing"),
        ((8, 0), "ampere"),
        ((8, 7), "ampere"),
        ((8, 9), "ada-lovelace"),
        ((9, 0), "hopper"),
        ((10, 0), "blackwell"),
        ((11, 0), "undefined"),
        ((12, 1), "blackwell"),
        ((13, 0), "rubin"),
        ((14, 0), "undefined"),
    ],
)
def test_family(capability: tuple[int, int], expected: str) -> None:
    assert family(*capability) == expected


@pytest.mark.parametrize(
    ("bus_id", "expected"),
    [
        ("00000000:07:00.0", "0000:07:00.0"),
        ("00010000:8A:00.0", "10000:8a:00.0"),
        ("", ""),
    ],
)
def test_addresses(bus_id: str, expected: str) -> None:
    assert normal_address(bus_id) == expected


def config_space(*capabilities: bytes) -> bytes:
    space = bytearray(256)
    space[6] = 0x10
    at = 0x40
    space[0x34] = at
    for number, capability in enumerate(capabilities):
        end = at + len(capability)
        space[at:end] = capability
        if number + 1 < len(capabilities):
            space[at + 1] = end
        at = end
    return bytes(space)


def vgpu_capability(version: bytes = b"460.16", branch: bytes = b"r460_00") -> bytes:
    record = bytes((0, 22)) + version.ljust(10, b"\0") + branch.ljust(10, b"\0")
    return bytes((9, 0, 27)) + b"VF" + record


def test_vgpu() -> None:
    power = bytes((1, 0)) + bytes(6)

    assert host_driver(config_space(power, vgpu_capability())) == HostDriver(
        "460.16", "r460_00"
    )


def test_other_devices_are_no_vgpu() -> None:
    """A passed-through device has a vendor capability of its own, 20 bytes long."""
    passed = bytes((9, 0, 20)) + bytes(17)

    assert host_driver(config_space(passed)) is None
    assert host_driver(config_space(vgpu_capability())[:64]) is None
    assert host_driver(bytes(256)) is None


@pytest.mark.parametrize("length", [0, 1, 4, 5, 6, 255])
def test_hostile_lengths(length: int) -> None:
    """Loops and lengths that overrun end."""
    capability = bytearray(vgpu_capability())
    capability[2] = length
    looped = bytearray(config_space(bytes(capability)))
    looped[0x41] = 0x40
    host_driver(bytes(looped))
    capability = bytearray(vgpu_capability())
    capability[5:7] = bytes((1, length))
    host_driver(config_space(bytes(capability)))


def test_settings() -> None:
    tree = {
        "migStrategy": "mixed",
        "sharing": {
            "timeSlicing": {
                "resources": [
                    {"name": "nvidia.com/gpu", "replicas": 4, "rename": "nvidia.com/x"}
                ]
            }
        },
    }
    settings = decode(NvmlSettings, tree)

    assert settings.mig_strategy == "mixed"
    assert settings.sharing.of("gpu") == (4, "time-slicing")
    assert "rename" in settings.sharing.warnings[0]


@pytest.mark.parametrize(
    ("sharing", "problem"),
    [
        ([], "expected a map"),
        ({"mps": 1}, "sharing.mps"),
        ({"mps": {"resources": [{"replicas": 2}]}}, "a resource name is needed"),
        ({"mps": {"resources": [{"name": "gpu"}]}}, "replicas"),
        ({"mps": {"resources": [{"name": "gpu", "replicas": 0}]}}, "from 1"),
    ],
)
def test_wrong_sharing(sharing: object, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Sharing.from_config(sharing, "sharing")
