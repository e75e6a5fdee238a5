"""The source contract: everything that a source of features must and may provide.

A source is found through the entry-point group `nfd.sources`; the name of the entry
point, `Source.name`, the word for `--sources` and the prefix of its labels are one.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import attrs

from nfd.features import Features
from nfd.hostroot import HostRoot

S = TypeVar("S")
Kind = Literal["flag", "attribute", "instance"]


class Settings:
    """Base of frozen settings classes that gives them repr, equality and hash.

    attrs would write and compile these for each class: a scan makes a dozen of them,
    and spends 6 % less when they say `@attrs.frozen(slots=True, eq=False, repr=False)`.
    A settings class may as well be any frozen attrs class.
    """

    __slots__ = ()
    __attrs_attrs__: ClassVar[tuple[Any, ...]] = ()  # the fields; attrs sets it

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, field.name) for field in self.__attrs_attrs__)

    def __repr__(self) -> str:
        shown = zip(self.__attrs_attrs__, self._values(), strict=True)
        fields = ", ".join(f"{field.name}={value!r}" for field, value in shown)
        return f"{type(self).__qualname__}({fields})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Settings) or type(self) is not type(other):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())


@attrs.frozen(slots=True, eq=False, repr=False)
class NoSettings(Settings):
    """The settings of a source that has none."""


def setting(key: str, default: Any, help: str) -> Any:  # noqa: A002 - as argparse
    """Declare one field of a settings class: configuration key, default and help.

    The annotation of the field is its type: bool, int, str, `tuple[str, ...]`,
    `Mapping[str, str]` or `tuple[Mapping[str, str], ...]`. `default` is immutable or
    copied by nobody. Every field needs a default.
    """
    return attrs.field(default=default, metadata={"key": key, "help": help})


# NB: What follows are named tuples: an attrs class takes four times as long to make,
# and a scan makes all of them (3 % of it for these four).


class FeatureSpec(NamedTuple):
    """Documents one feature set; `elements` is None when its names are open."""

    key: str  # "pci.device"
    kinds: tuple[Kind, ...]
    elements: tuple[str, ...] | None
    help: str


class LabelSpec(NamedTuple):
    """Documents one label or family of labels, as `<class>_<vendor>.present`."""

    name: str  # without the prefix; placeholders in <>
    help: str


class LabelValue(NamedTuple):
    """A label's value and what made it: feature key, element, deciding setting."""

    value: str
    feature: str = ""
    element: str = ""
    because: str = ""


class Watch(NamedTuple):
    """A reason to look again: a udev subsystem, or a file or folder (inotify)."""

    kind: Literal["udev", "path"]
    target: str  # "pci", or an absolute path below the host root


class Source(Generic[S]):
    """Base class of sources; stateless, so one object may serve many hosts."""

    name: ClassVar[str]
    on_by_default: ClassVar[bool] = True
    label_priority: ClassVar[int] = 0  # higher ones overwrite (spec section 0.2)
    prefix_labels: ClassVar[bool] = True  # key `x` becomes `<FEATURE_NS>/<name>-x`
    needs: ClassVar[tuple[str, ...]] = ()  # what every running host has, see below
    settings_class: ClassVar[type[Any]] = NoSettings
    feature_specs: ClassVar[tuple[FeatureSpec, ...]] = ()
    label_specs: ClassVar[tuple[LabelSpec, ...]] = ()

    def discover(self, host: HostRoot, settings: S) -> Features:
        """Read the host and return the feature sets of this source.

        What could not be read goes into `Features.unknown`, so that nobody takes
        ignorance for absence; an exception makes the whole source *failed*. So it is
        without being asked where a running host lacks a path of `needs`: then sysfs
        is not mounted, and nothing is known of the hardware.

        Raises:
            NotPresentError: The host has nothing of this kind: *absent*, no features.

        """
        raise NotImplementedError

    def labels(self, features: Features, settings: S) -> Mapping[str, LabelValue | str]:
        """Compute labels from this source's own features; pure."""
        raise NotImplementedError

    def why_not(self, name: str, features: Features, settings: S) -> str:
        """Say why the label `name` (without prefix) is not made, or ""; pure."""
        del name, features, settings
        return ""

    def watch(self, settings: S) -> tuple[Watch, ...]:
        """Name what signals a change of these features."""
        del settings
        return ()
