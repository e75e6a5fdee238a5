"""Network interfaces, from /sys/class/net.

Kernel: Documentation/ABI/testing/sysfs-class-net. Specification: worker.md section 1.4.
"""

from collections.abc import Mapping

from nfd.errors import NotPresentError
from nfd.features import Features
from nfd.hostroot import HostRoot
from nfd.source import (
    FeatureSpec,
    LabelSpec,
    LabelValue,
    NoSettings,
    Source,
    Watch,
)
from nfd_sources._reading import Gaps, entries, is_positive, read_folder

INTERFACES = "/sys/class/net"
NOT_INTERFACES = frozenset({"bonding_masters"})  # a file of the bonding driver

DEVICE = "network.device"
VIRTUAL = "network.virtual"
VIRTUAL_FILES = ("operstate", "speed", "mtu")
SRIOV_FILES = ("sriov_numvfs", "sriov_totalvfs")  # below device/

SRIOV_LABELS = {"sriov.capable": "sriov_totalvfs", "sriov.configured": "sriov_numvfs"}


class NetworkSource(Source[NoSettings]):
    """Finds network interfaces, those with a device behind them and the others."""

    name = "network"
    needs = ("/sys/class",)
    feature_specs = (
        FeatureSpec(
            DEVICE,
            ("instance",),
            ("name", *VIRTUAL_FILES, *SRIOV_FILES),
            "one instance an interface with a device behind it",
        ),
        FeatureSpec(
            VIRTUAL,
            ("instance",),
            ("name", *VIRTUAL_FILES),
            "one instance an interface without one: lo, bonds, bridges, tunnels",
        ),
    )
    label_specs = (
        LabelSpec("sriov.capable", "an interface can have virtual functions"),
        LabelSpec("sriov.configured", "an interface has virtual functions"),
    )

    def discover(self, host: HostRoot, settings: NoSettings) -> Features:
        """Read every interface, in order of name.

        Raises:
            NotPresentError: There is no /sys/class/net.
            OSError: The list of interfaces cannot be read.

        """
        del settings
        names = entries(host, INTERFACES)
        if names is None:
            raise NotPresentError(f"no {INTERFACES}")
        gaps = Gaps()
        found: dict[str, list[dict[str, str]]] = {DEVICE: [], VIRTUAL: []}
        for name in names:
            if name in NOT_INTERFACES:
                continue
            path = f"{INTERFACES}/{name}"
            try:
                key = DEVICE if host.exists(f"{path}/device") else VIRTUAL
            except OSError as error:  # it could be either
                gaps.unread(DEVICE, name, (error,))
                gaps.unread(VIRTUAL, name, (error,))
                continue
            errors: list[OSError] = []
            # A plain file or a dangling link still counts (section 11).
            interface = {"name": name}
            interface |= read_folder(host, path, VIRTUAL_FILES, errors)
            if key == DEVICE:
                interface |= read_folder(host, f"{path}/device", SRIOV_FILES, errors)
            if errors:
                gaps.unread(key, name, errors)
            found[key].append(interface)
        return Features.of(instances=found, unknown=gaps.unknown, notes=gaps.notes)

    def labels(
        self, features: Features, settings: NoSettings
    ) -> Mapping[str, LabelValue]:
        """Return `sriov.capable` and `sriov.configured` where they hold."""
        del settings
        labels: dict[str, LabelValue] = {}
        for interface in features.instances.get(DEVICE, ()):
            for label, attribute in SRIOV_LABELS.items():
                if is_positive(interface.get(attribute)):
                    because = f"{attribute} is {interface[attribute]}"
                    labels.setdefault(
                        label, LabelValue("true", DEVICE, interface["name"], because)
                    )
        return labels

    def why_not(self, name: str, features: Features, settings: NoSettings) -> str:
        """Say what the interfaces lack."""
        del settings
        attribute = SRIOV_LABELS.get(name)
        if attribute is None:
            return ""
        seen = [
            f"{i['name']}={i[attribute]}"
            for i in features.instances.get(DEVICE, ())
            if attribute in i
        ]
        if seen:
            return f"no interface has {attribute} above 0 ({', '.join(seen)})"
        return f"no interface has the file device/{attribute}"

    def watch(self, settings: NoSettings) -> tuple[Watch, ...]:
        """Look again when an interface comes or goes, or gets virtual functions."""
        del settings
        return (Watch("udev", "net"), Watch("udev", "pci"))
