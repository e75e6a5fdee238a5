"""Which Intel devices make which labels: data.

Specification: spec/gpu.md sections 2.2 and 2.3. Presence needs the device on the PCI
bus and its module in the kernel.
"""

from nfd_sources._pcitable import Row

NS = "intel.feature.node.kubernetes.io"
GPU_CLASSES = ("0300", "0380")
GPU_MODULES = ("i915|xe",)

_A_SERIES = (
    *("5690", "5691", "5692", "5693", "5694", "5695", "5696", "5697"),
    *("56a0", "56a1", "56a2", "56a3", "56a4", "56a5", "56a6"),
    *("56b0", "56b1", "56b2", "56b3"),
)
PRODUCTS = {  # PCI device → product, family; "" where only the family has a label
    "0bda": ("Max_1100", "Max_Series"),
    "0bd5": ("Max_1550", "Max_Series"),
    "56c0": ("Flex_170", "Flex_Series"),
    "56c1": ("Flex_140", "Flex_Series"),
    **dict.fromkeys(_A_SERIES, ("", "A_Series")),
}


def _present(name: str) -> dict[str, str]:
    return {f"{NS}/{name}": "true"}


ROWS = (
    Row("8086", _present("gpu"), GPU_CLASSES, modules=GPU_MODULES),
    Row(
        "8086",
        _present("npu"),
        ("1200",),
        ("7e4c", "643e", "ad1d", "7d1d", "b03e", "fd3e", "d71d"),
        modules=("intel_vpu",),
    ),
    Row(
        "8086",
        _present("qat"),
        ("0b40",),
        ("37c8", "4940", "4942", "4944", "4946", "4948"),
        modules=("intel_qat", "vfio_pci"),
    ),
    Row(
        "8086", _present("dsa"), ("0880",), ("0b25", "11fb", "1212"), modules=("idxd",)
    ),
    Row("8086", _present("iaa"), ("0880",), ("0cfe", "1216"), modules=("idxd",)),
    Row("8086", _present("dlb"), ("0b40",), ("2710",), modules=("dlb2",)),
    Row(
        "8086",
        _present("fpga-arria10"),
        ("1200",),
        ("09c4",),
        modules=("dfl_pci|intel_fpga_pci",),
    ),
    Row("1da3", _present("gaudi"), devices=("1020", "1030", "1063")),
)
VENDORS = ("8086", "1da3")
GAUDI = "1da3"
GAUDI_NAMES = {
    **dict.fromkeys(("1000", "1001", "1010", "1011"), "gaudi1"),
    **dict.fromkeys(("1020", "1021"), "gaudi2"),
    **dict.fromkeys(("1030", "1060", "1061", "1062", "1063"), "gaudi3"),
}
# Beginnings of the classes that any row is about; the others are not even read.
CLASSES = ("0300", "0380", "0880", "0b40", "12")
