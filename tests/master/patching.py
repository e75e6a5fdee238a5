"""A small RFC 6902 applier for planning tests; refuses as the API server does."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any


class PatchRefusedError(Exception):
    """A `test` failed or a path is missing."""


def apply(document: dict[str, Any], operations: Iterable[Mapping[str, Any]]) -> Any:
    """Apply add, replace, remove and test; the input stays as it is."""
    result = copy.deepcopy(document)
    for op in operations:
        *parents, last = [
            p.replace("~1", "/").replace("~0", "~") for p in op["path"][1:].split("/")
        ]
        here = result
        for part in parents:
            if part not in here:
                raise PatchRefusedError(op)
            here = here[part]
        if op["op"] == "test":
            # As the API server's library: null stands for nothing there.
            if here.get(last) != op["value"]:
                raise PatchRefusedError(op)
        elif op["op"] == "add":
            here[last] = copy.deepcopy(op["value"])
        elif last not in here:
            raise PatchRefusedError(op)
        elif op["op"] == "replace":
            here[last] = copy.deepcopy(op["value"])
        else:
            del here[last]
    return result
