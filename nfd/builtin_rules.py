"""Decides cheaply whether the two built-in worker rules can give anything.

The rule engine takes longer to import than a whole discovery takes to run, and most
hosts have neither rules of their own nor RDMA. Source: spec/worker.md section 5.
"""

from typing import ClassVar

from nfd.features import Features
from nfd.hostroot import NOT_THERE, HostRoot
from nfd.labels import Label, Refusal

NAME = "custom"
CUSTOM_D = "/etc/kubernetes/node-feature-discovery/custom.d"

_READ = ("pci.device", "kernel.loadedmodule")
_RDMA_MODULES = frozenset({"ib_uverbs", "rdma_ucm"})
_MELLANOX = "15b3"


class BuiltInRules:
    """`nfd.custom.CustomSource` without rules of the user, loaded when it matters."""

    name: ClassVar[str] = NAME
    label_priority: ClassVar[int] = 10

    def labels(self, features: Features) -> tuple[list[Label], list[Refusal]]:
        """Return what `CustomSource().labels` returns."""
        if not may_answer(features):
            return [], []
        from nfd.custom import CustomSource  # noqa: PLC0415 - the rule engine is big

        return CustomSource().labels(features)


def may_answer(features: Features) -> bool:
    """Tell whether a built-in rule can match or be undecided."""
    if any(key in features.unknown for key in _READ):
        return True
    modules = features.flags.get("kernel.loadedmodule", frozenset())
    devices = features.instances.get("pci.device", ())
    return modules >= _RDMA_MODULES or any(
        device.get("vendor") == _MELLANOX for device in devices
    )


def has_rule_files(host: HostRoot) -> bool:
    """Tell whether there may be rule files on the host."""
    try:
        return bool(host.listdir(CUSTOM_D))
    except OSError as error:
        return error.errno not in NOT_THERE
