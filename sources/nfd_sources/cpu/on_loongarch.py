"""The processor on LoongArch: /proc/cpuinfo."""

from nfd.hostroot import HostRoot
from nfd_sources._reading import Gaps
from nfd_sources.cpu.cpuinfo import feature_words, first_fields
from nfd_sources.cpu.processor import CPUID, MODEL, Processor, read_cpuinfo


def identify(host: HostRoot, arch: str, gaps: Gaps) -> Processor:
    """Return the words and the model of cpuinfo."""
    del arch
    text = read_cpuinfo(host, CPUID, gaps)
    if text is None:
        if CPUID in gaps.unknown:
            gaps.unknown[MODEL] = gaps.unknown[CPUID]
        return Processor()
    words = feature_words(text, "Features")
    flags = frozenset(word.upper() for word in words)
    return Processor(flags, loongarch_model(text))


def loongarch_model(text: str) -> dict[str, str]:
    """Return family and model name; the vendor is the first word of the family."""
    fields = first_fields(text)
    values = {"family": fields.get("CPU Family"), "id": fields.get("Model Name")}
    model = {name: value for name, value in values.items() if value}
    if "family" in model:
        model["vendor_id"] = model["family"].partition("-")[0]
    return model
