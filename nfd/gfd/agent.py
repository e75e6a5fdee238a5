"""The loop of `gpu-feature-discovery`: look, publish, wait.

NVML is tried afresh in every pass. Labels that are there stay while GPUs are on the
bus and cannot be asked.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from nfd.config.decode import decode
from nfd.discovery import Plan, Runner, discover
from nfd.errors import ConfigError, NfdError
from nfd.gfd.publishing import Output
from nfd.gfd.settings import GfdSettings
from nfd.hostroot import HostRoot
from nfd.kube.clock import Stop
from nfd.registry import Registry

SOURCE = "nvml"
TIMESTAMP = "nvidia.com/gfd.timestamp"
TIMEOUT = 60.0  # seconds: without persistence mode every GPU takes some to wake


@attrs.frozen(slots=True)
class Look:
    """What one pass found: labels, or why NVML could not be asked."""

    labels: Mapping[str, str] = attrs.field(factory=dict)
    error: str = ""
    gone: bool = False  # there is no GPU on the bus either
    refused: tuple[str, ...] = ()


class Agent:
    """Runs passes until it is stopped; `load` gives the settings, again on reload."""

    def __init__(
        self,
        load: Callable[[], GfdSettings],
        output: Callable[[GfdSettings], Output],
        host: HostRoot,
        registry: Registry,
        log: Any,
    ) -> None:
        self._load = load
        self._make_output = output
        self._host = host
        self._source = registry.load(SOURCE)
        self._runner = Runner(TIMEOUT)
        self._started = str(int(time.time()))
        self._log = log
        self._told: frozenset[str] = frozenset()

    def run(self, stop: Stop, reload: Stop) -> int:
        """Run passes; return the exit status.

        `reload` is set to load the settings again, together with `stop` to end.
        """
        settings = self._load()
        output = self._make_output(settings)
        while True:
            try:
                self._pass(settings, output)
            except NfdError as error:
                if settings.oneshot or self._is_fatal(error, settings):
                    self._log.error("failed", reason=str(error))
                    return 1
                self._log.warning("pass failed", reason=str(error))
            if settings.oneshot:
                return 0
            reload.wait(settings.sleep_interval)
            if stop.is_set():
                break
            if reload.is_set():
                reload.clear()
                try:
                    settings = self._load()
                    output = self._make_output(settings)
                    self._log.info("reloaded")
                except NfdError as error:
                    self._log.warning("settings stay as they were", reason=str(error))
        if settings.remove_on_exit:
            output.remove()
        return 0

    @staticmethod
    def _is_fatal(error: NfdError, settings: GfdSettings) -> bool:
        return isinstance(error, ConfigError) or (
            isinstance(error, InitError) and settings.fail_on_init_error
        )

    def _pass(self, settings: GfdSettings, output: Output) -> None:
        look = self.look(settings)
        for refusal in sorted(set(look.refused) - self._told):
            self._log.warning("left out", what=refusal)
        self._told = frozenset(look.refused)
        if look.error:
            if settings.fail_on_init_error:
                raise InitError(look.error)
            kept = not look.gone and output.holds_labels()
            self._log.warning("NVML cannot be asked", reason=look.error, kept=kept)
            if kept:
                return
        labels = dict(look.labels)
        if not settings.no_timestamp:
            labels[TIMESTAMP] = self._started
        if len(labels) <= 1:
            self._log.warning("no labels of GPUs", count=len(labels))
        if output.publish(labels):
            self._log.info("labels written", count=len(labels))

    def look(self, settings: GfdSettings) -> Look:
        """Ask the source once.

        Raises:
            ConfigError: The settings do not fit the source or the GPUs.

        """
        source = self._source
        made = decode(source.settings_class, settings.source_config, "settings")
        plan = Plan((source,), frozenset({SOURCE}), {SOURCE: made})
        found = discover(self._host, plan, self._runner)
        result = found.results[SOURCE]
        refused = tuple(f"label {r.key}: {r.reason}" for r in found.refused)
        if result.status == "ok":
            labels = {key: label.value for key, label in found.labels.items()}
            return Look(labels, refused=refused)
        if result.features.keys():  # the labels raised: the settings exclude them
            raise ConfigError(result.error)
        gone = result.status == "absent" and not result.not_ready
        return Look(error=result.error, gone=gone, refused=refused)


class InitError(NfdError):
    """NVML cannot be initialised, and the settings call that an error."""
