"""Logs of the agents: structlog, set up once, with the logging flags of klog.

Library code logs through the standard `logging`, which is led in here. `nfd scan`
never imports this module.
"""

import contextlib
import logging
import os
import sys
from collections.abc import Mapping
from typing import IO, Any, Literal

import attrs

from nfd.errors import ConfigError

if "structlog" not in sys.modules:
    # structlog looks for these to draw tracebacks, which costs 5 MB in every agent.
    _hidden: dict[str, Any] = {
        name: sys.modules.get(name, ...) for name in ("rich", "better_exceptions")
    }
    sys.modules.update(dict.fromkeys(_hidden))  # type: ignore[arg-type] # None: no such module
    import structlog

    for _name, _module in _hidden.items():
        if _module is ...:
            del sys.modules[_name]
        else:
            sys.modules[_name] = _module
else:
    import structlog

Form = Literal["json", "text"]
FORMS = ("json", "text")
_ERROR = 2  # klog's severities: info, warning, error, fatal
_LEVELS = {
    "debug": (logging.DEBUG, 0),
    "info": (logging.INFO, 0),
    "warning": (logging.WARNING, 1),
    "error": (logging.ERROR, _ERROR),
    "critical": (logging.CRITICAL, 3),
}
_files: list[IO[str]] = []  # log files that are open
_KLOG_WORDS = {"INFO": 0, "WARNING": 1, "ERROR": _ERROR, "FATAL": 3}


@attrs.frozen(slots=True)
class _Output:
    """A stream, and the least klog severity that is written to it."""

    stream: IO[str]
    least: int = 0


@attrs.define(slots=True)
class _Writer:
    """What structlog calls with a finished line, one method a level."""

    outputs: tuple[_Output, ...]

    def _write(self, line: str, severity: int) -> None:
        for output in self.outputs:
            if severity >= output.least:
                # NB: there is nowhere to tell it, and no fact may be lost for it.
                with contextlib.suppress(OSError, ValueError):
                    output.stream.write(line + "\n")
                    output.stream.flush()

    def debug(self, line: str) -> None:
        self._write(line, 0)

    info = debug

    def warning(self, line: str) -> None:
        self._write(line, 1)

    def error(self, line: str) -> None:
        self._write(line, _ERROR)

    def critical(self, line: str) -> None:
        self._write(line, 3)


class _Bridge(logging.Handler):
    """Hands records of the standard library's loggers on to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        log = structlog.get_logger().bind(logger=record.name)
        level = record.levelname.lower()
        write = getattr(log, level if level in _LEVELS else "info")
        if record.exc_info:
            write(record.getMessage(), exc_info=record.exc_info)
        else:
            write(record.getMessage())


def configure(
    program: str,
    klog: Mapping[str, Any] | None = None,
    *,
    form: Form | Literal[""] = "",
    stream: IO[str] | None = None,
) -> None:
    """Set up the logs of this process; a later call replaces an earlier one.

    Args:
        program: The name of the program, for `log_dir`.
        klog: Values of klog flags by their names; missing ones have their defaults.
        form: One JSON object a line, or text; by default JSON unless `stream` is a
            terminal.
        stream: Where to write instead of standard error.

    Raises:
        ConfigError: A log file cannot be written, or a threshold is wrong.

    """
    values = klog or {}
    stream = stream or sys.stderr
    while _files:
        _files.pop().close()
    writer = _Writer(_outputs(program, values, stream))
    form = form or ("text" if stream.isatty() else "json")
    verbose = int(values.get("v") or 0) > 0
    level = logging.DEBUG if verbose else logging.INFO
    structlog.configure(
        processors=_processors(form, headers=not values.get("skip_headers")),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: writer,
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler, _Bridge):
            root.removeHandler(handler)
    root.addHandler(_Bridge())
    root.setLevel(level)


def logger(component: str) -> Any:
    """Return a logger whose lines name the component; call `configure` before."""
    return structlog.get_logger().bind(component=component)


def _processors(form: Form, *, headers: bool) -> list[Any]:
    head = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
    ]
    body = [structlog.processors.format_exc_info]
    if form == "json":
        renderer: Any = structlog.processors.JSONRenderer(
            sort_keys=False, default=str, separators=(",", ":")
        )
    else:
        renderer = _text_line
    return [*(head if headers else []), *body, renderer]


def _text_line(_: Any, __: str, event: Any) -> str:
    """Write `time level event key=value …`; text with spaces is quoted."""
    start = [str(event.pop(k)) for k in ("time", "level") if k in event]
    said = str(event.pop("event", ""))
    trace = event.pop("exception", "")
    pairs = [f"{key}={_shown(value)}" for key, value in event.items()]
    line = " ".join([*start, said, *pairs])
    return f"{line}\n{trace}" if trace else line


def _shown(value: Any) -> str:
    text = str(value)
    plain = text and not any(c in ' ="' or not c.isprintable() for c in text)
    return text if plain else repr(text)


def _outputs(
    program: str, values: Mapping[str, Any], stream: IO[str]
) -> tuple[_Output, ...]:
    path = str(values.get("log_file") or "")
    if not path and values.get("log_dir"):
        path = os.path.join(str(values["log_dir"]), f"{program}.log")
    if not path or values.get("logtostderr", True):
        return (_Output(stream),)
    least = 0 if values.get("alsologtostderr") else _threshold(values)
    try:
        file = open(path, "a", encoding="utf-8")  # noqa: SIM115 - open until `configure`
    except OSError as error:
        raise ConfigError(f"log file {path}: {error.strerror}") from None
    _files.append(file)
    return (_Output(file), _Output(stream, least))


def _threshold(values: Mapping[str, Any]) -> int:
    word = str(values.get("stderrthreshold") or _ERROR)
    try:
        return _KLOG_WORDS[word.upper()] if word.upper() in _KLOG_WORDS else int(word)
    except ValueError:
        raise ConfigError(
            f"stderrthreshold: {word!r} is not allowed here, expected 0 to 3 or"
            " INFO, WARNING, ERROR, FATAL"
        ) from None
