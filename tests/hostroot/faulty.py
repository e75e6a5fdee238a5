"""Host roots that fail on purpose, for tests of sources and of the runner."""

from collections.abc import Mapping

from nfd.hostroot import HostRoot, Recorder
from nfd.hostroot.record import ErrorsTree, RecordingTree


class FaultyHostRoot(HostRoot):
    """A host root in which reading or listing the given paths raises an errno.

    `errors` maps host paths, as a source asks for them, to errno numbers. It is read at
    each question, so a test may change it between two discoveries.
    """

    def __init__(
        self,
        path: str,
        errors: Mapping[str, int],
        *,
        live: bool | None = None,
        record: Recorder | None = None,
    ) -> None:
        super().__init__(path, live=live, record=record)
        self._tree = ErrorsTree(self._plain, errors)
        if record is not None:
            self._tree = RecordingTree(self._tree, record)
