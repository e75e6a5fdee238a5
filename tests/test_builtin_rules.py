"""The cheap test of the built-in rules agrees with the rule engine."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfd.builtin_rules import CUSTOM_D, BuiltInRules, has_rule_files
from nfd.custom import FOLDER, NAME, CustomSource
from nfd.features import Features
from tests import tiny

MODULES = st.sets(st.sampled_from(["ib_uverbs", "rdma_ucm", "nvidia"]))
DEVICES = st.lists(
    st.dictionaries(
        st.sampled_from(["vendor", "device"]), st.sampled_from(["15b3", "8086", ""])
    )
)
UNKNOWN = st.dictionaries(
    st.sampled_from(["pci.device", "kernel.loadedmodule", "kernel.config"]),
    st.just("EIO"),
)


@given(modules=st.none() | MODULES, devices=st.none() | DEVICES, unknown=UNKNOWN)
def test_same_answers_as_the_engine(
    modules: set[str] | None,
    devices: list[dict[str, str]] | None,
    unknown: dict[str, str],
) -> None:
    features = Features.of(
        flags={} if modules is None else {"kernel.loadedmodule": modules},
        instances={} if devices is None else {"pci.device": devices},
        unknown=unknown,
    )

    assert BuiltInRules().labels(features) == CustomSource().labels(features)


def test_names_are_those_of_the_custom_source() -> None:
    assert (BuiltInRules.name, CUSTOM_D) == (NAME, FOLDER)
    assert CustomSource.label_priority == BuiltInRules.label_priority


@pytest.mark.parametrize(
    ("files", "expected"),
    [({}, False), ({CUSTOM_D: "a file"}, False), ({f"{CUSTOM_D}/a.yaml": ""}, True)],
)
def test_rule_files(tmp_path: Path, files: dict[str, str], *, expected: bool) -> None:
    with tiny.host(tmp_path, files) as host:
        assert has_rule_files(host) is expected
