"""The worker's own NodeFeature on the API server: read, written, watched."""

import threading
from collections.abc import Callable
from typing import Any

import attrs

from nfd.kube.answers import metadata_of
from nfd.kube.client import Client
from nfd.kube.errors import AlreadyExists, ApiError, Conflict, Forbidden, NotFound
from nfd.kube.reflector import Reflector
from nfd.kube.resources import NODEFEATURES, JsonObject
from nfd.kube.retry import Backoff
from nfd.publish.nodefeature import (
    POD_UID,
    REFUSED,
    Identity,
    OwnerReference,
    Publication,
    build,
    content_hash,
    replacement,
    size,
)

_TRIES = 4  # when others write at the same time
_DENIED_WAIT = 3600.0  # seconds until the right to watch is asked for again


@attrs.frozen(slots=True)
class _Found:
    """What of an object is needed to replace it, and the hash of its content."""

    metadata: dict[str, Any]
    hash: str
    pod_uid: str = ""

    @classmethod
    def of(cls, obj: JsonObject) -> "_Found":
        metadata = metadata_of(obj)
        notes = metadata.get("annotations") or {}
        kept: dict[str, Any] = {
            k: metadata[k]
            for k in ("resourceVersion", "uid", "ownerReferences")
            if k in metadata
        }
        kept["annotations"] = {k: v for k, v in notes.items() if k == REFUSED}
        return cls(kept, content_hash(obj), str(notes.get(POD_UID) or ""))

    @property
    def version(self) -> int:
        try:
            return int(self.metadata["resourceVersion"])
        except (KeyError, ValueError):
            return 0


@attrs.frozen(slots=True)
class Written:
    """What a write came to."""

    changed: bool  # whether a request changed the object
    size: int  # bytes of JSON
    owners_refused: str = ""  # the server's words where it let us set no owners


class OwnNodeFeature:
    """Keeps what is known of the object; also what a `Reflector` tells.

    `edited` is called, from any thread, when somebody else changed or deleted it.
    """

    def __init__(
        self,
        client: Client,
        identity: Identity,
        node: str,
        edited: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._identity = identity
        self._node = node
        self._edited = edited
        self._lock = threading.Lock()
        self._known = False
        self._found: _Found | None = None
        self._wanted = ""  # hash of what we wanted last
        self._ours = ""  # hash of what came of it
        self._deleted_uid = ""  # of the object that was deleted last
        self._owners_refused = ""
        self._listed: JsonObject | None = None
        self._told: Callable[[ApiError | None], None] = lambda _: None

    def reflector(self, told: Callable[[ApiError | None], None]) -> Reflector:
        """Return what watches the object, for a thread to run.

        `told` is called with every failure, and with None when a list is complete.
        """
        self._told = told
        return Reflector(
            client=self._client,
            resource=NODEFEATURES,
            handler=self,
            namespace=self._identity.namespace,
            field_selector=f"metadata.name={self._node}",
            backoff=Backoff(0.8, 120.0),
            denied_wait=_DENIED_WAIT,
            on_error=told,
        )

    def read(self) -> JsonObject | None:
        """Ask for the object; None when there is none.

        Raises:
            ApiError: The server does not answer, or refuses.

        """
        try:
            obj = self._client.get(NODEFEATURES, self._node, self._identity.namespace)
        except NotFound:
            obj = None
        self._take(obj)
        return obj

    @property
    def foreign(self) -> str:
        """Who wrote it after us: the pod UID of another worker, "" if unknown."""
        with self._lock:
            found = self._found
        if found is None or found.pod_uid == self._identity.pod_uid:
            return ""
        return found.pod_uid

    @property
    def as_written(self) -> bool:
        """Whether it is, as far as is known, as we wrote it last."""
        with self._lock:
            return self._found is not None and self._found.hash == self._ours

    def write(
        self, said: Publication, owners: tuple[OwnerReference, ...] | None
    ) -> Written:
        """Create or replace the object; asks for nothing when it is right already.

        Raises:
            ApiError: It could not be written.

        """
        for left in reversed(range(_TRIES)):
            try:
                return self._write_once(said, owners)
            except (AlreadyExists, Conflict):
                self._known = False
                if not left:
                    raise
            except NotFound:
                with self._lock:
                    gone = self._found is not None
                if not gone or not left:
                    raise
                self._take(None)
            except Forbidden as error:
                if self._owners_refused or not owners or not _about_owners(error):
                    raise
                self._owners_refused = str(error)
        raise AssertionError("every try returns or raises")

    def _write_once(
        self, said: Publication, owners: tuple[OwnerReference, ...] | None
    ) -> Written:
        if not self._known:
            self.read()
        made = build(said, self._identity, None if self._owners_refused else owners)
        with self._lock:
            found = self._found
        if found is not None:
            made = replacement(made, {"metadata": found.metadata})
        wanted = content_hash(made)
        if wanted != self._wanted:
            self._wanted = self._ours = wanted
        bytes_, refused = size(made), self._owners_refused
        if found is not None and found.hash in {wanted, self._ours}:
            return Written(changed=False, size=bytes_, owners_refused=refused)
        if found is None:
            answer = self._client.create(NODEFEATURES, made)
        else:
            answer = self._client.update(NODEFEATURES, made)
        self._take(answer)
        self._ours = content_hash(answer)  # admission may have its own ideas
        return Written(changed=True, size=bytes_, owners_refused=refused)

    def delete(self) -> bool:
        """Delete the object; tell whether there was one.

        Raises:
            ApiError: It could not be deleted.

        """
        obj = self.read()
        if obj is None:
            return False
        uid = metadata_of(obj)["uid"]
        self._client.delete(NODEFEATURES, self._node, self._identity.namespace, uid=uid)
        self._take(None)
        return True

    def _take(self, obj: JsonObject | None) -> None:
        """Take in an answer, unless a watch has told something newer already."""
        found = None if obj is None else _Found.of(obj)
        with self._lock:
            self._known = True
            if found is None or found.metadata["uid"] == self._deleted_uid:
                self._found = None
            else:
                self._found = self._newer(found)

    def _newer(self, found: _Found) -> _Found:
        """Return the newer of what is known and `found`, of one and the same object."""
        before = self._found
        if before is None or before.metadata.get("uid") != found.metadata.get("uid"):
            return found
        return found if found.version >= before.version else before

    # --- what a reflector tells -----------------------------------------------------

    def replace_begin(self) -> None:
        """A list starts."""
        self._listed = None

    def item(self, obj: JsonObject) -> None:
        """The list shows the object."""
        self._listed = obj

    def replace_end(self) -> None:
        """The list was complete."""
        obj, self._listed = self._listed, None
        self._told(None)
        self._see(obj)

    def added(self, obj: JsonObject) -> None:
        """The object was created."""
        self.modified(obj)

    def modified(self, obj: JsonObject) -> None:
        """The object changed."""
        self._see(obj)

    def deleted(self, obj: JsonObject) -> None:
        """The object was deleted."""
        uid = obj["metadata"].get("uid", "")
        with self._lock:
            self._deleted_uid = uid
            before = self._found
            another = before is not None and before.metadata.get("uid") != uid
        if not another:
            self._see(None)

    def _see(self, obj: JsonObject | None) -> None:
        with self._lock:
            self._found = None if obj is None else self._newer(_Found.of(obj))
            self._known = True
            edited = bool(self._ours) and (
                self._found is None or self._found.hash != self._ours
            )
        if edited:
            self._edited()


def _about_owners(error: Forbidden) -> bool:
    text = error.message.lower()
    return "ownerref" in text or "blockownerdeletion" in text
