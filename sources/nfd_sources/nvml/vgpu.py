"""vGPU guests tell their host's driver in PCI configuration space; pure.

Source: spec/gpu.md section 1.6. Every walk is bounded: a guest's bytes come from its
host.
"""

import attrs

_STATUS, _HAS_CAPABILITIES = 0x06, 0x10
_FIRST_CAPABILITY = 0x34
_VENDOR_SPECIFIC = 0x09
_SIGNATURE = b"VF"
_SPACE = 256
_VERSION_LENGTH = 10
_RECORDS = 5  # offset of the records in the capability
_HOST_DRIVER = 0


@attrs.frozen(slots=True)
class HostDriver:
    """The driver of the host that a vGPU runs on; "" if it does not tell."""

    version: str = ""
    branch: str = ""


def host_driver(config: bytes) -> HostDriver | None:
    """Return the host's driver when the 256 bytes of `config` are a vGPU's."""
    if len(config) < _SPACE or not config[_STATUS] & _HAS_CAPABILITIES:
        return None
    capability = _vendor_capability(config[:_SPACE])
    if capability is None:
        return None
    at = _RECORDS
    while at + 1 < len(capability):
        kind, length = capability[at], capability[at + 1]
        if kind == _HOST_DRIVER:
            data = capability[at + 2 : at + 2 + 2 * _VERSION_LENGTH]
            return HostDriver(
                _text(data[:_VERSION_LENGTH]), _text(data[_VERSION_LENGTH:])
            )
        if length == 0:
            break
        at += length
    return HostDriver()


def _vendor_capability(config: bytes) -> bytes | None:
    at = config[_FIRST_CAPABILITY]
    seen: set[int] = set()
    while at and at not in seen and at + _RECORDS <= _SPACE:
        seen.add(at)
        length = config[at + 2]
        if (
            config[at] == _VENDOR_SPECIFIC
            and length >= _RECORDS
            and config[at + 3 : at + 5] == _SIGNATURE
        ):
            return config[at : at + length]
        at = config[at + 1]
    return None


def _text(data: bytes) -> str:
    return data.split(b"\0")[0].decode("ascii", "replace").strip()
