"""Takes out of captured host files what tells one machine from another; pure.

Equal values get equal placeholders, numbered in order of appearance, so that facts which
agreed still agree. Placeholders keep the shape of what they stand for (a MAC address stays
one), and a placeholder is never redacted again.
"""

import ipaddress
import re
from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal[
    "mac", "uuid", "id", "serial", "asset", "host", "ipv4", "ipv6"
]

# Files whose whole content is one such value. Real paths, as links are resolved first.
_WHOLE: tuple[tuple[str, Kind], ...] = (
    (r"^/\.nfd/node_name$", "host"),
    (r"_serial$|/(serial|serial_number|subsysnqn|hostnqn)$", "serial"),
    (r"/(wwid|nguid|eui|unique_id|hive_id|hostid|port_name|node_name)$", "serial"),
    (r"/(phys_port_id|phys_switch_id|vpd_pg80|vpd_pg83)$", "serial"),
    (r"_asset_tag$", "asset"),
    (r"/(product_uuid|uuid)$", "uuid"),
    (r"/(node_guid|sys_image_guid|port_guid)$|^/etc/machine-id$", "id"),
    (r"/net/[^/]+/(address|perm_address)$", "mac"),
    (r"^/etc/hostname$|^/proc/sys/kernel/hostname$|/node_desc$", "host"),
)
# Values inside files whose names end so: a pattern whose last group is the value.
_INSIDE: tuple[tuple[str, str, Kind], ...] = (
    (r"/cpuinfo$", r"(?mi)^(serial\s*: )(\S+)", "serial"),
    (r"/cpuinfo$", r"(identification = )(\w+)", "id"),
    (r"/sysinfo$", r"(?m)^(Sequence Code:\s*)(\S+)", "serial"),
    (r"/sysinfo$", r"(?m)^((?:LPAR|VM\d\d) (?:Extended )?Name:\s*)(\S+)", "host"),
    (r"/uevent$", r"(?m)^([A-Z_]*(?:SERIAL|UNIQ)[A-Z_]*=)(.+)", "serial"),
    (r"/kfd/.*/properties$", r"(?m)^((?:unique_id|hive_id) )(\d+)", "serial"),
    (r"^/\.nfd/", r'(?i)("[a-z_]*serial[a-z_]*"\s*:\s*")([^"]+)', "serial"),
    (r"^/proc/version$", r"( \()([^@\s()]+@[^\s()]+)", "host"),
    (r"^/proc/cmdline$", r"(machine_id=)([0-9a-f]{32})", "id"),
)
# Free text, in which addresses and the host's own name may stand anywhere.
_FREE = re.compile(
    r"^/proc/cmdline$|^/etc/(?!os-release)|^/\.nfd/(?!auxv|cpuid|errors|uname)"
)
_PCI_CONFIG = re.compile(r"/[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]/config$")
_PLAIN_CONFIG = 256  # bytes
_HEX = "0-9A-Fa-f"
_MAC = re.compile(
    rf"(?<![{_HEX}:])(?:[{_HEX}]{{2}}:){{5,19}}[{_HEX}]{{2}}(?![{_HEX}:])"
)
_UUID = re.compile(
    rf"(?<![{_HEX}])[{_HEX}]{{8}}(?:-[{_HEX}]{{4}}){{3}}-[{_HEX}]{{12}}(?![{_HEX}])"
)
_NAMED_MAC = re.compile(r"\b((?:en|wl|ww)x)([0-9a-f]{12})\b")  # systemd's names
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])")
_IPV6 = re.compile(rf"(?<![\w:.])[{_HEX}:]*:[{_HEX}:]*:[{_HEX}:]*(?![\w:.])")
_PCI_ADDRESS = re.compile(rf"[{_HEX}]{{4,}}:[{_HEX}]{{2}}:[{_HEX}]{{2}}\.[0-7]")
_URL_HOST = re.compile(r"(://)([^/:\s\[\]]+)")
_FILLERS = frozenset(
    {
        "",
        "0",
        "default string",
        "n/a",
        "no asset information",
        "no asset tag",
        "none",
        "not applicable",
        "not available",
        "not specified",
        "system serial number",
        "to be filled by o.e.m.",
        "unknown",
    }
)
_SAFE_NAMES = frozenset({"localhost", "(none)", "linux"})


class Redactor:
    """Redacts many files of one host alike; `host_names` are names it is known by."""

    def __init__(self, host_names: Iterable[str] = ()) -> None:
        self._known: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        self._issued: set[str] = set()
        names = {n for name in host_names for n in (name, name.partition(".")[0])}
        wanted = sorted(names - _SAFE_NAMES - {""}, key=lambda n: (-len(n), n))
        self._names = (
            re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, wanted))})(?![\w-])")
            if wanted
            else None
        )

    @property
    def counts(self) -> dict[str, int]:
        """How many different values of each kind were replaced."""
        return dict(sorted(self._counts.items()))

    def content(self, path: str, content: bytes) -> bytes:
        """Redact the content of the file at a real host path; binary stays as it is.

        Of PCI configuration space the first 256 bytes stay: serial numbers of devices
        stand in the capabilities beyond them.
        """
        if _PCI_CONFIG.search(path):
            return content[:_PLAIN_CONFIG]
        if b"\0" in content or content.startswith(b"\x1f\x8b"):
            return content
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return self.text(path, content.decode("latin-1")).encode("latin-1")
        return self.text(path, text).encode()

    def text(self, path: str, text: str) -> str:
        """Redact the text of the file at a real host path."""
        for pattern, kind in _WHOLE:
            if re.search(pattern, path):
                value = text.strip()
                return text.replace(value, self.value(kind, value)) if value else text
        for suffix, pattern, kind in _INSIDE:
            if re.search(suffix, path):
                text = re.sub(pattern, self._last_group(kind), text)
        text = _UUID.sub(self._whole("uuid"), text)
        text = _MAC.sub(self._whole("mac"), text)
        text = self.name(text)
        if _FREE.search(path):
            text = self._free(text)
        return text

    def name(self, text: str) -> str:
        """Redact a path, a link's target or a text that holds names of devices."""
        return _NAMED_MAC.sub(
            lambda m: m[1] + self.value("mac", _colons(m[2])).replace(":", ""), text
        )

    def value(self, kind: Kind, value: str) -> str:
        """Return the placeholder of one value; fillers as `None` stay."""
        digits = re.sub(rf"[^{_HEX}]", "", value).lower()
        shaped = kind in {"mac", "uuid", "id"}
        if value in self._issued or value.lower() in _FILLERS or not value.strip("0"):
            return value
        if shaped and len(set(digits)) == 1:  # broadcast, loopback, unset
            return value
        if kind == "serial" and _PCI_ADDRESS.fullmatch(value):  # USB root hubs have it
            return value
        key = kind, digits if shaped else value
        known = self._known.get(key)
        if known is None:
            number = self._counts[kind] = self._counts.get(kind, 0) + 1
            known = _placeholder(kind, value, number)
            self._known[key] = known
            self._issued.add(known)
        return known

    def _free(self, text: str) -> str:
        text = _IPV4.sub(self._whole("ipv4"), text)
        text = _IPV6.sub(lambda match: self._ipv6(match[0]), text)
        text = _URL_HOST.sub(self._last_group("host"), text)
        return self._names.sub(self._whole("host"), text) if self._names else text

    def _ipv6(self, text: str) -> str:
        try:
            ipaddress.IPv6Address(text)
        except ValueError:
            return text
        return self.value("ipv6", text)

    def _whole(self, kind: Kind) -> Callable[[re.Match[str]], str]:
        return lambda match: self.value(kind, match[0])

    def _last_group(self, kind: Kind) -> Callable[[re.Match[str]], str]:
        return lambda match: match[1] + self.value(kind, match[2])


def _colons(digits: str) -> str:
    return ":".join(digits[i : i + 2] for i in range(0, len(digits), 2))


def _placeholder(kind: Kind, value: str, number: int) -> str:
    match kind:
        case "mac":
            return _shaped(value, number, "02")
        case "uuid":
            return _shaped(value, number, "0000000000004000800")
        case "id":
            return _shaped(value, number, "")
        case "host":
            return f"host-{number}"
        case "ipv4":
            # The three networks that RFC 5737 keeps for documentation.
            network = ("192.0.2", "198.51.100", "203.0.113")[number // 254 % 3]
            return f"{network}.{number % 254}"
        case "ipv6":
            return f"2001:db8::{number:x}"
        case "serial" | "asset":
            return f"{kind.upper()}{number:04d}"


def _shaped(value: str, number: int, start: str) -> str:
    """Fill the places of hexadecimal digits: `start`, zeros, and the number."""
    places = len(re.findall(rf"[{_HEX}]", value))
    digits = iter((start + f"{number:0{max(places - len(start), 0)}x}")[:places])
    return re.sub(rf"[{_HEX}]", lambda _: next(digits), value)
