"""NVIDIA GPUs, from NVML, with the labels of GPU feature discovery.

Specification: spec/gpu.md section 1; the manual's page is docs/sources/nvml.md. Where
the PCI bus has no NVIDIA GPU, nothing is imported and nothing is asked.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

from nfd.errors import NotPresentError
from nfd.features import Features
from nfd.hostroot import HostRoot
from nfd.source import FeatureSpec, LabelSpec, LabelValue, Source, Watch
from nfd_sources._pci import functions_of
from nfd_sources._reading import Gaps
from nfd_sources.nvml.chip import is_tegra
from nfd_sources.nvml.settings import NvmlSettings

if TYPE_CHECKING:
    from nfd_sources.nvml.library import Session

__all__ = ["NvmlSettings", "NvmlSource"]

FACT = "nvml"  # the name of the record in captures

_NVIDIA = ("10de",)
_DISPLAY_CLASS = "03"
_WSL_DEVICE = "/dev/dxg"
_MIG_ELEMENTS = (
    *("memory", "multiprocessors", "slices.gi", "slices.ci"),
    *("engines.copy", "engines.decoder", "engines.encoder", "engines.jpeg"),
    "engines.ofa",
)


def _label(name: str, text: str) -> LabelSpec:
    return LabelSpec(f"nvidia.com/{name}", text)


class NvmlSource(Source[NvmlSettings]):
    """Finds out what NVIDIA GPUs can do and how they are divided and shared."""

    name = "nvml"
    needs = ("/sys/class",)
    settings_class = NvmlSettings
    feature_specs: ClassVar = (
        FeatureSpec(
            "nvml.device",
            ("instance",),
            (
                *("address", "uuid", "name", "kind", "class", "memory", "family"),
                *("compute.major", "compute.minor", "mig.capable", "mig.enabled"),
                *("fabric.cluster", "fabric.clique", "c2c", "addressing_mode"),
                "health",
            ),
            "one instance a GPU, in order of address",
        ),
        FeatureSpec(
            "nvml.mig",
            ("instance",),
            ("parent", "product", "profile", "uuid", *_MIG_ELEMENTS),
            "one instance a MIG device, in order of GPU and profile",
        ),
        FeatureSpec(
            "nvml.driver",
            ("attribute",),
            (
                *("version", "version.major", "version.minor", "version.revision"),
                *("cuda", "cuda.major", "cuda.minor"),
            ),
            "version of the driver, and the newest CUDA version that it serves",
        ),
        FeatureSpec(
            "nvml.vgpu",
            ("attribute",),
            ("present", "host-driver-version", "host-driver-branch"),
            "whether this is the guest of a vGPU host, and the host's driver",
        ),
        FeatureSpec(
            "nvml.machine", ("attribute",), ("product_name",), "the machine's model"
        ),
        FeatureSpec(
            "nvml.agent",
            ("attribute",),
            ("started",),
            "start of this process; only with the setting timestamp",
        ),
    )
    label_specs: ClassVar = (
        _label("gpu.product", "name of the primary model, with what divides it"),
        _label("gpu.count", "GPUs of the primary model, or its MIG devices"),
        _label("gpu.replicas", "pods that may share one; 0 when MIG has them all"),
        _label("gpu.sharing-strategy", "none, time-slicing or mps"),
        _label("gpu.memory", "memory of one, in MiB"),
        _label("gpu.family", "architecture"),
        _label("gpu.compute.<part>", "compute capability: major, minor"),
        _label("gpu.mode", "graphics, compute or unknown"),
        _label("gpu.machine", "the machine's model"),
        _label("gpu.clique", "cluster and clique of the NVLink fabric"),
        _label("gpu.mixed", "true with more than one compute model"),
        _label("gpu.<model>.count", "GPUs of each model"),
        _label("gpu.<model>.memory", "memory of one of each model, in MiB"),
        _label(
            "gpu.<attribute>", "multiprocessors, slices.*, engines.* of a MIG device"
        ),
        _label("cuda.driver-version.<part>", "driver: major, minor, revision, full"),
        _label("cuda.runtime-version.<part>", "newest CUDA: major, minor, full"),
        _label("cuda.driver.<part>", "deprecated: major, minor, rev"),
        _label("cuda.runtime.<part>", "deprecated: major, minor"),
        _label("mig.capable", "whether a GPU can have MIG devices"),
        _label("mig.strategy", "single or mixed, when set"),
        _label("mig-<profile>.<attribute>", "mixed: as gpu.*, of each profile"),
        _label("mps.capable", "whether MPS sharing works here"),
        _label("vgpu.present", "whether this is the guest of a vGPU host"),
        _label("vgpu.host-driver-version", "the host's driver"),
        _label("vgpu.host-driver-branch", "the host's driver"),
        _label("gfd.timestamp", "start of the process; off by default"),
    )

    def discover(self, host: HostRoot, settings: NvmlSettings) -> Features:
        """Ask NVML, initialised afresh, about every GPU.

        Raises:
            NotPresentError: There is no NVIDIA GPU, or this is a capture without it.
            NotReadyError: There is one, but NVML cannot be used.
            NfdError: NVML does not tell how many GPUs there are.

        """
        errors: list[OSError] = []
        functions = functions_of(host, _NVIDIA, errors)
        has_gpu = any(f.class_.startswith(_DISPLAY_CLASS) for f in functions)
        gaps = Gaps()
        if not has_gpu and not settings.always and not _may_have_gpu(host):
            if not errors:
                raise NotPresentError("no NVIDIA GPU on the PCI bus")
            for spec in self.feature_specs:
                gaps.unread(spec.key, "", errors)
            return Features(unknown=gaps.unknown, notes=gaps.notes)
        recorded = None if host.live else host.fact(FACT, str)
        if not host.live and recorded is None:
            raise NotPresentError(
                "NVML answers on a running host, and the capture has no record"
            )
        from nfd_sources.nvml import reading  # noqa: PLC0415 - with GPUs only

        if recorded is not None:
            return reading.replay(recorded)
        doors = reading.Doors(self._connect, self._connect_cuda)
        if errors:  # a function that is not known may be a vGPU
            gaps.unread(reading.VGPU, "", errors)
        return reading.read(host, settings, functions, doors, gaps)

    def labels(
        self, features: Features, settings: NvmlSettings
    ) -> Mapping[str, LabelValue]:
        """Return the labels of GPU feature discovery, and those of each model.

        Raises:
            ConfigError: MPS is configured for GPUs in MIG mode.

        """
        if not features.keys():
            return {}
        from nfd_sources.nvml import labels  # noqa: PLC0415 - with GPUs only

        return labels.labels(features, settings)

    def why_not(self, name: str, features: Features, settings: NvmlSettings) -> str:
        """Say what the label needs."""
        del settings
        from nfd_sources.nvml import labels  # noqa: PLC0415 - when asked only

        return labels.why_not(name, features)

    def watch(self, settings: NvmlSettings) -> tuple[Watch, ...]:
        """Look again when a GPU or its driver comes or goes."""
        del settings
        return (Watch("udev", "pci"), Watch("udev", "module"))

    def _connect(self, paths: Iterable[str]) -> "Session":
        from nfd_sources.nvml.binding import connect  # noqa: PLC0415 - with GPUs only

        return connect(paths)

    def _connect_cuda(self, paths: Iterable[str]) -> "Session":
        from nfd_sources.nvml.tegra import connect  # noqa: PLC0415 - as above

        return connect(paths)


def _may_have_gpu(host: HostRoot) -> bool:
    """Tell whether a GPU may be there that is no PCI device: on WSL and on Tegra."""
    return host.exists(_WSL_DEVICE) or is_tegra(host)
