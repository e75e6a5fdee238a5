"""The exception tree: every error that nfd raises on purpose is an `NfdError`."""


class NfdError(Exception):
    """Base of all errors raised by nfd; its text says what, where and the input."""


class NotPresentError(NfdError):
    """The hardware or facility that a source looks at does not exist on this host.

    Raised by `Source.discover`; the source is then *absent*, which is a completed
    discovery with no features, and not *failed*.
    """


class NotReadyError(NotPresentError):
    """The hardware is there, but what tells about it is not: no driver, no library.

    Raised by `Source.discover`; the source is then *absent*, and *failed* for a worker
    that remembers facts of it, which it keeps.
    """


class ConfigError(NfdError):
    """A configuration value is wrong; the text starts with the path of its key."""


class HostError(NfdError):
    """The host root itself cannot be used (missing, unreadable, broken archive)."""


class RuleError(NfdError):
    """A rule cannot be loaded or evaluated; the text names rule and position."""


class UsageError(NfdError):
    """A command was called in the wrong way (exit status 2)."""
