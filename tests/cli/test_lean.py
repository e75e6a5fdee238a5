"""Modules that wait until they are used: only in the command, and as good as others."""

import subprocess
import sys
from types import ModuleType

import pytest

from nfd.cli import lean

START = """\
import pickle, sys, types
from nfd.cli.lean import DEFERRED, Deferred, import_attrs
import_attrs()
waiting = [name for name in DEFERRED if type(sys.modules.get(name)) is Deferred]
"""


def _python(code: str, start: str = START) -> str:
    done = subprocess.run(
        [sys.executable, "-c", start + code], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_attrs_works_without_what_waits() -> None:
    code = """
import attrs
@attrs.frozen(slots=True)
class Point:
    x: int
    y: int = 0
print(Point(1), attrs.evolve(Point(1), y=2), waiting == list(DEFERRED))
print([type(sys.modules[name]).__name__ for name in DEFERRED])
"""

    shown, types = _python(code).splitlines()

    assert shown == "Point(x=1, y=0) Point(x=1, y=2) True"
    assert types == str(["Deferred"] * len(lean.DEFERRED))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import inspect; inspect.signature(pickle.dumps); m = inspect", "inspect"),
        ("from inspect import *; signature; import inspect as m", "inspect"),
        ("import copy as m; m.copy([])", "copy"),
        ("import platform as m; m.machine()", "platform"),
        ("import tokenize as m; m.generate_tokens", "tokenize"),
        ("import attrs; m = attrs.validators; m.instance_of(int)", "attrs.validators"),
        ("import attr; m = attr.validators; m.instance_of(int)", "attr.validators"),
    ],
)
def test_first_use_makes_it_an_ordinary_module(code: str, expected: str) -> None:
    code += """
print(m.__name__, m is sys.modules[m.__name__], type(m) is types.ModuleType)
print(m.__loader__ is m.__spec__.loader, type(m.__loader__).__name__)
"""

    assert _python(code).splitlines() == [
        f"{expected} True True",
        "True SourceFileLoader",
    ]


@pytest.mark.parametrize(
    "code",
    [
        (
            "import inspect; f = pickle.loads(pickle.dumps(inspect.signature))\n"
            "print(f is inspect.signature)"
        ),
        "import inspect, textwrap; print('def wrap' in inspect.getsource(textwrap))",
        (
            "import platform; p = platform.python_implementation(); platform.machine()\n"
            "print(p == platform.python_implementation() == 'CPython')"
        ),
        (
            "import dataclasses; d = dataclasses.make_dataclass('D', ['x'])\n"
            "print(d(1).x == 1)"
        ),
        (
            "import importlib, inspect; importlib.reload(inspect)\n"
            "print(callable(inspect.signature))"
        ),
        "import inspect\nprint(not hasattr(inspect, 'no_such_name'))",
        (
            "import inspect, threading\n"
            "found = []\n"
            "def use(): found.append(inspect.signature)\n"
            "threads = [threading.Thread(target=use) for _ in range(8)]\n"
            "[t.start() for t in threads]; [t.join() for t in threads]\n"
            "print(found == [inspect.signature] * 8)"
        ),
    ],
)
def test_whatever_uses_it_works(code: str) -> None:
    assert _python(code) == "True\n"


def test_rare_features_of_attrs_work() -> None:
    code = """
import attrs
from functools import cached_property
@attrs.define
class Thing:
    size: int = attrs.field(validator=attrs.validators.ge(0), converter=int)
    def __attrs_pre_init__(self, *args): ...
    @cached_property
    def double(self) -> int:
        return self.size * 2
@attrs.define
class Bigger(Thing):
    more: int = 0
print(Thing("2").double, Bigger(2, 1))
try:
    Thing(-1)
except ValueError:
    print("refused")
"""

    assert _python(code) == "4 Bigger(size=2, more=1)\nrefused\n"


def test_a_traceback_shows_source() -> None:
    code = """
import traceback, textwrap
try:
    textwrap.wrap(None)
except AttributeError:
    print('self._munge_whitespace' in traceback.format_exc())
"""

    assert _python(code) == "True\n"


def test_the_library_defers_nothing() -> None:
    code = """
import inspect, sys, types
import nfd
nfd.Features()
print(type(sys.modules["inspect"]) is types.ModuleType, "nfd.cli.lean" in sys.modules)
print(type(sys.modules["attr.validators"]) is types.ModuleType)
"""

    assert _python(code, start="") == "True False\nTrue\n"


def test_code_that_fails_is_tried_again() -> None:
    class Failing:
        left = 1

        def exec_module(self, module: ModuleType) -> None:
            self.left -= 1
            if self.left == 0:
                msg = "not yet"
                raise OSError(msg)
            module.__dict__["answer"] = 42

    module = lean.Deferred("nfd_waits")
    module.__dict__["_deferred"] = Failing()

    with pytest.raises(OSError, match="not yet"):
        _ = module.answer

    assert module.answer == 42
    assert type(module) is ModuleType
