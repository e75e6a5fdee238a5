"""The processor on RISC-V: /proc/cpuinfo."""

import re

from nfd.hostroot import HostRoot
from nfd_sources._reading import Gaps
from nfd_sources.cpu.cpuinfo import first_fields
from nfd_sources.cpu.processor import CPUID, MODEL, Processor, read_cpuinfo


def identify(host: HostRoot, arch: str, gaps: Gaps) -> Processor:
    """Return the extensions and the id registers of cpuinfo."""
    del arch
    text = read_cpuinfo(host, CPUID, gaps)
    if text is None:
        if CPUID in gaps.unknown:
            gaps.unknown[MODEL] = gaps.unknown[CPUID]
        return Processor()
    return Processor(riscv_flags(text), riscv_model(text))


def riscv_flags(text: str) -> frozenset[str]:
    """Return the ISA extensions in capitals: `rv64imac_zba` gives I M A C ZBA.

    Source: Documentation/arch/riscv/uabi.rst.
    """
    isa = first_fields(text).get("isa", "").lower()
    single, *long = isa.split("_")
    match = re.fullmatch(r"rv\d+([a-z]*)", single)
    if not match:
        return frozenset()
    return frozenset(name.upper() for name in (*match[1], *long) if name)


def riscv_model(text: str) -> dict[str, str]:
    """Return the machine's id registers: mvendorid, marchid, mimpid, if not zero."""
    fields = first_fields(text)
    registers = {"vendor_id": "mvendorid", "family": "marchid", "id": "mimpid"}
    values = {name: fields.get(field, "") for name, field in registers.items()}
    return {name: value for name, value in values.items() if value.strip("0x")}
