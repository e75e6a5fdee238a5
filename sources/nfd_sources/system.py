"""The system's identity: node name, /etc/os-release, DMI.

Formats: os-release(5), Documentation/ABI/testing/sysfs-firmware-dmi-tables.
Specification: worker.md section 1.8.
"""

import re
from collections.abc import Mapping

from nfd.features import Features
from nfd.hostroot import HostRoot, trim
from nfd.source import FeatureSpec, LabelSpec, LabelValue, NoSettings, Source, Watch
from nfd_sources._reading import Gaps, read_folder

OS_RELEASE = "/etc/os-release"
DMI = "/sys/devices/virtual/dmi/id"

NAME = "system.name"
OS = "system.osrelease"
DMIID = "system.dmiid"

DMI_FILES = (
    "bios_date",
    "bios_vendor",
    "bios_version",
    "board_asset_tag",
    "board_name",
    "board_vendor",
    "board_version",
    "chassis_asset_tag",
    "chassis_type",
    "chassis_vendor",
    "chassis_version",
    "product_family",
    "product_name",
    "product_sku",
    "product_version",
    "sys_vendor",
)
OS_LABELS = (
    "ID",
    "VERSION_ID",
    "VERSION_ID.major",
    "VERSION_ID.minor",
    "OPENSHIFT_VERSION",
    "OSTREE_VERSION",
    "RHEL_VERSION",
)
LABEL_PREFIX = "os_release."

_ASSIGNMENT = re.compile(r"(\w+)=(.+)", re.ASCII)
_VERSION = re.compile(r"([0-9]+)(?:\.([0-9]+))?(?:\..*)?")


class SystemSource(Source[NoSettings]):
    """Finds out the node name, the operating system and the machine's model."""

    name = "system"
    feature_specs = (
        FeatureSpec(NAME, ("attribute",), ("nodename",), "the Kubernetes node name"),
        FeatureSpec(
            OS,
            ("attribute",),
            None,
            "every variable of os-release; VERSION_ID.major and VERSION_ID.minor",
        ),
        FeatureSpec(DMIID, ("attribute",), DMI_FILES, "the machine as DMI states it"),
    )
    label_specs = tuple(
        LabelSpec(f"{LABEL_PREFIX}{name}", f"{name} of os-release, when it is there")
        for name in OS_LABELS
    )

    def discover(self, host: HostRoot, settings: NoSettings) -> Features:
        """Read the three sets; each that cannot be read is unknown by itself."""
        del settings
        gaps = Gaps()
        attributes = {NAME: {"nodename": host.node_name}}
        with gaps.reading(OS):
            text = host.read_optional(OS_RELEASE)
            if text is not None:
                attributes[OS] = parse_os_release(text)
        errors: list[OSError] = []
        dmi = read_folder(host, DMI, DMI_FILES, errors)
        if errors:
            gaps.unread(DMIID, "", errors)
        if dmi:
            attributes[DMIID] = dmi
        return Features.of(
            attributes=attributes, unknown=gaps.unknown, notes=gaps.notes
        )

    def labels(
        self, features: Features, settings: NoSettings
    ) -> Mapping[str, LabelValue]:
        """Return the chosen variables of os-release."""
        del settings
        release = features.attributes.get(OS, {})
        return {
            f"{LABEL_PREFIX}{name}": LabelValue(release[name], OS, name)
            for name in OS_LABELS
            if name in release
        }

    def why_not(self, name: str, features: Features, settings: NoSettings) -> str:
        """Say that os-release lacks the variable, or is no source of labels."""
        del settings
        if not name.startswith(LABEL_PREFIX):
            return f"this source labels {LABEL_PREFIX}* only"
        variable = name.removeprefix(LABEL_PREFIX)
        release = features.attributes.get(OS)
        if release is None:
            return f"no {OS_RELEASE}"
        if variable not in OS_LABELS:
            return f"of os-release only {', '.join(OS_LABELS)} become labels"
        if variable.startswith("VERSION_ID.") and "VERSION_ID" in release:
            return f"VERSION_ID is {release['VERSION_ID']!r}"
        return f"{OS_RELEASE} has no {variable.partition('.')[0]}"

    def watch(self, settings: NoSettings) -> tuple[Watch, ...]:
        """Look again when os-release is replaced, as updates of the system do."""
        del settings
        return (Watch("path", OS_RELEASE),)


def parse_os_release(text: str) -> dict[str, str]:
    """Return the variables of os-release, and the parts of VERSION_ID.

    Quotes around a value go; escapes stay. The last of equal names counts.
    """
    variables = {}
    for line in text.split("\n"):
        found = _ASSIGNMENT.match(line)
        if found:
            variables[found[1]] = trim(found[2]).strip("\"'")
    version = _VERSION.fullmatch(variables.get("VERSION_ID", ""))
    if version:
        variables["VERSION_ID.major"] = version[1]
        if version[2] is not None:
            variables["VERSION_ID.minor"] = version[2]
    return variables
