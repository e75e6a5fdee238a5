"""The worker's page names every flag and metric, and its program runs."""

import re

import pytest

from nfd.cli.worker import FLAGS
from nfd.metrics_text import page
from nfd.worker.publisher import Publisher
from nfd.worker.results import NODE, OBJECT
from nfd.worker.status import Status
from tests.conftest import ROOT
from tests.worker.rig import rig

PAGE = (ROOT / "docs" / "worker.md").read_text()
KLOG_OTHERS = {  # named together as those without effect
    "add_dir_header",
    "log_backtrace_at",
    "log_file_max_size",
    "one_output",
    "skip_log_headers",
    "vmodule",
    "legacy_stderr_threshold_behavior",
    "alsologtostderrthreshold",
}


@pytest.mark.parametrize("flag", [f.name for f in FLAGS if f.name not in KLOG_OTHERS])
def test_every_flag_is_documented(flag: str) -> None:
    assert f"`-{flag}" in PAGE


def test_every_metric_is_documented() -> None:
    with rig((NODE, OBJECT)) as r:
        assert isinstance(r.publisher, Publisher)
        status = Status("n", r.troubles, r.publisher)
        names = set(re.findall(r"^# TYPE (\S+)", page(status._metrics()), re.MULTILINE))

    assert len(names) >= 10
    assert names <= set(re.findall(r"`(nfd_worker_\w+)`", PAGE))


def test_program_of_the_page_compiles() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

    compile(code, "worker.md", "exec")
