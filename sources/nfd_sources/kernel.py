"""The kernel: version, build configuration, modules, SELinux, KVM.

Formats: proc(5); the kernel's `.config`. Specification: worker.md section 1.2.
"""

import errno
import re
import zlib
from collections.abc import Iterator, Mapping

import attrs

from nfd.features import Features
from nfd.hostroot import DEFAULT_LIMIT, HostRoot
from nfd.source import (
    FeatureSpec,
    LabelSpec,
    LabelValue,
    Settings,
    Source,
    Watch,
    setting,
)
from nfd_sources._reading import INFO, Gaps, report, word

OSRELEASE = "/proc/sys/kernel/osrelease"
MODULES = "/proc/modules"
FILE_SYSTEMS = "/sys/fs"
SELINUX_ENFORCE = "/sys/fs/selinux/enforce"
KVM_DEVICE = "/sys/devices/virtual/misc/kvm"

# {} is the kernel release; where it is not known, only the others are looked at.
CONFIG_FILES = (
    "/proc/config.gz",
    "/usr/src/linux-{}/.config",
    "/usr/src/linux-rt-{}/.config",
    "/usr/src/linux/.config",
    "/usr/lib/modules/{}/config",
    "/usr/lib/ostree-boot/config-{}",
    "/usr/lib/kernel/config-{}",
    "/usr/src/linux-headers-{}/.config",
    "/lib/modules/{}/build/.config",
    "/usr/src/linux-rt-headers-{}/.config",
    "/boot/config-{}",
)
BUILTIN_FILE = "/lib/modules/{}/modules.builtin"

VERSION = "kernel.version"
CONFIG = "kernel.config"
LOADED = "kernel.loadedmodule"
ENABLED = "kernel.enabledmodule"
SELINUX = "kernel.selinux"
KVM = "kernel.kvm"
VERSION_PARTS = ("full", "major", "minor", "revision")

_NOT_IN_VALUE = re.compile(r"[^-A-Za-z0-9_.]")
_NUMBERS = re.compile(r"([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?")


@attrs.frozen(slots=True, eq=False, repr=False)
class KernelSettings(Settings):
    """The settings below `sources.kernel`."""

    kconfig_file: str = setting(
        "kconfigFile", "", "kernel configuration to read before the usual places"
    )
    config_opts: tuple[str, ...] = setting(
        "configOpts",
        ("NO_HZ", "NO_HZ_IDLE", "NO_HZ_FULL", "PREEMPT"),
        "kernel options that get labels, without CONFIG_",
    )


class KernelSource(Source[KernelSettings]):
    """Finds out about the running kernel."""

    name = "kernel"
    settings_class = KernelSettings
    feature_specs = (
        FeatureSpec(VERSION, ("attribute",), VERSION_PARTS, "the kernel's release"),
        FeatureSpec(CONFIG, ("attribute",), None, "options without CONFIG_"),
        FeatureSpec(LOADED, ("flag",), None, "loaded modules"),
        FeatureSpec(ENABLED, ("flag",), None, "loaded and built-in modules"),
        FeatureSpec(SELINUX, ("attribute",), ("enabled",), "whether SELinux enforces"),
        FeatureSpec(KVM, ("attribute",), ("enabled",), "whether there is KVM"),
    )
    label_specs = (
        *(LabelSpec(f"version.{p}", f"{p} of kernel.version") for p in VERSION_PARTS),
        LabelSpec("config.<option>", "a chosen option: true for y and m, else as is"),
        LabelSpec("selinux.enabled", "SELinux is there and enforces"),
    )

    def discover(self, host: HostRoot, settings: KernelSettings) -> Features:
        """Read the six sets; each that cannot be read is unknown by itself."""
        gaps = Gaps()
        flags: dict[str, set[str]] = {}
        attributes: dict[str, dict[str, str]] = {}
        release = None
        with gaps.reading(VERSION):
            release = host.read_optional(OSRELEASE)
            if release:
                attributes[VERSION] = parse_version(release)
        if VERSION in gaps.unknown:  # the files' names have the release in them
            for key in (CONFIG, ENABLED):
                gaps.unknown[key] = gaps.unknown[VERSION]
        config = _read_config(host, settings.kconfig_file, release, gaps)
        if config is not None:
            attributes[CONFIG] = parse_config(config)
        _read_modules(host, release, flags, gaps)
        with gaps.reading(SELINUX):
            if host.exists(FILE_SYSTEMS):
                enforce = host.read_optional(SELINUX_ENFORCE) or ""
                attributes[SELINUX] = {"enabled": word(enforce.startswith("1"))}
        with gaps.reading(KVM):
            attributes[KVM] = {"enabled": word(host.exists(KVM_DEVICE))}
        return Features.of(
            flags=flags, attributes=attributes, unknown=gaps.unknown, notes=gaps.notes
        )

    def labels(
        self, features: Features, settings: KernelSettings
    ) -> Mapping[str, LabelValue]:
        """Return the version's parts, chosen options, and `selinux.enabled`."""
        labels = {
            f"version.{part}": LabelValue(value, VERSION, part)
            for part, value in features.attributes.get(VERSION, {}).items()
        }
        config = features.attributes.get(CONFIG, {})
        for option in settings.config_opts:
            if option in config:
                value = "true" if config[option] in ("y", "m") else config[option]
                labels[f"config.{option}"] = LabelValue(
                    value, CONFIG, option, "named in sources.kernel.configOpts"
                )
        if features.attributes.get(SELINUX, {}).get("enabled") == "true":
            labels["selinux.enabled"] = LabelValue("true", SELINUX, "enabled")
        return labels

    def why_not(self, name: str, features: Features, settings: KernelSettings) -> str:
        """Say which file, option or setting is missing."""
        family, _, member = name.partition(".")
        if family == "version":
            return "" if VERSION in features.attributes else f"no {OSRELEASE}"
        if name == "selinux.enabled":
            if SELINUX in features.attributes:
                return f"{SELINUX_ENFORCE} is missing or not 1"
            return f"no {FILE_SYSTEMS}"
        if family != "config":
            return "this source makes version.*, config.* and selinux.enabled"
        config = features.attributes.get(CONFIG)
        if config is None:
            return "no kernel configuration found"
        if member not in config:
            return f"CONFIG_{member} is not set in the kernel configuration"
        if member not in settings.config_opts:
            return (
                f"CONFIG_{member} is {config[member]}, but not named in "
                f"sources.kernel.configOpts ({', '.join(settings.config_opts)})"
            )
        return ""

    def watch(self, settings: KernelSettings) -> tuple[Watch, ...]:
        """Look again when a module comes or goes."""
        del settings
        return (Watch("udev", "module"),)


def parse_version(release: str) -> dict[str, str]:
    """Return the elements of `kernel.version` of a kernel release.

    The leading numbers count, whatever follows them ("5.15.79.1-microsoft").
    """
    full = _NOT_IN_VALUE.sub("_", release).strip("-_.")
    version = {"full": full}
    numbers = _NUMBERS.match(full)
    if numbers:
        parts = zip(VERSION_PARTS[1:], numbers.groups(""), strict=True)
        version.update(parts)
    return version


def parse_config(text: str) -> dict[str, str]:
    """Return the options of a kernel's `.config`, without CONFIG_ and quotes."""
    options = {}
    for line in text.split("\n"):
        if line.startswith("CONFIG_"):
            name, equals, value = line.partition("=")
            if equals:
                options[name[7:]] = value.strip('"')
    return options


def parse_modules(text: str) -> set[str]:
    """Return the names in /proc/modules."""
    return {line.split(None, 1)[0] for line in text.split("\n") if line.strip()}


def parse_builtin(text: str) -> set[str]:
    """Return the names in modules.builtin; `-` stays `-`."""
    paths = (line.strip() for line in text.split("\n"))
    return {
        p.rpartition("/")[2].removesuffix(".ko") for p in paths if p.endswith(".ko")
    }


def _config_paths(
    host: HostRoot, configured: str, release: str | None
) -> Iterator[str]:
    if configured:
        # Upstream takes a path of its container: /host-boot/… is the host's /boot/….
        if host.path.endswith("-"):
            configured = configured.removeprefix(host.path)
        yield "/" + configured.lstrip("/")
    for path in CONFIG_FILES:
        if "{}" not in path:
            yield path
        elif release:
            yield path.format(release)


def _read_config(
    host: HostRoot, configured: str, release: str | None, gaps: Gaps
) -> str | None:
    """Return the first configuration that can be read."""
    errors: list[OSError] = []
    for path in _config_paths(host, configured, release):
        try:
            data = host.read_bytes(path)
            if path.endswith(".gz"):
                data = _gunzip(data, path)
        except FileNotFoundError:
            continue
        except OSError as error:
            errors.append(error)
            continue
        if errors:
            report(INFO, "kernel configuration passed over error=%s", errors[0])
        return data.decode("utf-8", "replace")
    if errors:
        gaps.unread(CONFIG, "", errors)
    else:
        report(INFO, "no kernel configuration found")
    return None


def _gunzip(data: bytes, path: str) -> bytes:
    """Unpack, at most `DEFAULT_LIMIT` bytes."""
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        text = unpacker.decompress(data, DEFAULT_LIMIT)
    except zlib.error as error:
        raise OSError(errno.EBADMSG, str(error), path) from None
    if not unpacker.eof:
        raise OSError(errno.EBADMSG, "truncated, or too long", path)
    return text


def _read_modules(
    host: HostRoot, release: str | None, flags: dict[str, set[str]], gaps: Gaps
) -> None:
    loaded = None
    with gaps.reading(LOADED):
        text = host.read_optional(MODULES)
        loaded = None if text is None else parse_modules(text)
    if loaded is not None:
        flags[LOADED] = loaded
    if LOADED in gaps.unknown:
        gaps.unknown[ENABLED] = gaps.unknown[LOADED]
    if not release:
        return
    with gaps.reading(ENABLED):
        text = host.read_optional(BUILTIN_FILE.format(release))
        if text is not None:
            flags[ENABLED] = parse_builtin(text) | (loaded or set())
