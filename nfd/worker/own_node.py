"""The labels on the worker's own Node: the fence proved first, then guarded patches."""

from collections.abc import Mapping, Sequence

import attrs

from nfd.kube import patch
from nfd.kube.answers import metadata_of
from nfd.kube.client import Client
from nfd.kube.errors import ApiError, Conflict, Forbidden, Invalid
from nfd.kube.resources import NODES, JsonObject
from nfd.labels import FEATURE_NS
from nfd.publish.ownership import WORKER_MANAGER, Hold, KeyConflict
from nfd.worker.nodeplan import LabelsPlan, OwnNode, plan_labels

PROBE = "fence.nfd.invalid/probe"  # a label that no admission policy may let through
_TRIES = 4  # when others write at the same time
_ASK_AGAIN = 3600.0  # seconds until it is asked again whether there is a fence
_CONTESTED = 3  # how often a key is written again over another worker's value


class NotFencedError(ApiError):
    """No admission policy keeps this worker from writing more than it should."""


@attrs.frozen(slots=True)
class Wrote:
    """What became of the labels; keys are sorted."""

    changed: bool = False
    removed: tuple[str, ...] = ()
    yielded: tuple[KeyConflict, ...] = ()
    outside: tuple[str, ...] = ()


class OwnLabels:
    """Writes labels onto one Node, as field manager `nfd-worker`."""

    def __init__(
        self, client: Client, node: str, *, trust_unfenced: bool = False
    ) -> None:
        self._client = client.but(field_manager=WORKER_MANAGER)
        self._name = node
        self._trusted = trust_unfenced
        self._node: OwnNode | None = None
        self.uid = ""  # of the Node, once it was read
        self._written: dict[str, str] = {}
        self._contested: dict[str, int] = {}
        self.narrowed = ""  # the refusal after which only FEATURE_NS is written

    def forget(self) -> None:
        """Read the Node again before the next write."""
        self._node = None

    def read(self) -> Mapping[str, str]:
        """Ask for the Node's metadata; return the labels that a worker wrote last.

        Raises:
            ApiError: The server does not answer, or refuses.

        """
        obj = self._client.get(NODES, self._name, metadata_only=True)
        node = OwnNode.from_metadata(metadata_of(obj))
        if self.uid != node.uid:
            self._written.clear()  # another machine of the same name
            self._contested.clear()
        for key, value in self._written.items():
            found = node.labels.get(key)
            if found not in {value, None} and node.managers.get(key) == WORKER_MANAGER:
                self._contested[key] = self._contested.get(key, 0) + 1
        self._node, self.uid = node, node.uid
        return {k: node.labels[k] for k in sorted(node.owned) if k in node.labels}

    def apply(
        self, wanted: Mapping[str, str], namespaces: Sequence[str], *, removals: bool
    ) -> Wrote:
        """Bring the Node's labels to `wanted`; asks for nothing when they are.

        With `removals` false keys are only added and changed.

        Raises:
            NotFencedError: There is no fence, so nothing was written.
            ApiError: The Node could not be read or written.

        """
        for left in reversed(range(_TRIES)):
            if self._node is None:
                self.read()
            assert self._node is not None
            plan, mine = self._plan(self._node, wanted, namespaces, removals=removals)
            if not plan.operations:
                return self._done(plan, mine, changed=False)
            try:
                self._prove_fence(self._node)
                answer = self._client.json_patch(NODES, self._name, plan.operations)
            except (Conflict, Invalid):
                self._node = None  # not as we thought: look, and plan again
                if not left:
                    raise
            except Forbidden as error:
                if error.missing_permission or self.narrowed or not left:
                    raise
                self.narrowed = str(error)
            else:
                self._take(answer)
                return self._done(plan, mine, changed=True)
        raise AssertionError("every try returns or raises")

    def _plan(
        self,
        node: OwnNode,
        wanted: Mapping[str, str],
        namespaces: Sequence[str],
        *,
        removals: bool,
    ) -> tuple[LabelsPlan, Mapping[str, str]]:
        contested = {
            k
            for k, times in self._contested.items()
            if times >= _CONTESTED and self._written.get(k) == wanted.get(k)
        }
        mine = {k: v for k, v in wanted.items() if k not in contested}
        plan = plan_labels(
            node,
            mine,
            namespaces=(FEATURE_NS,) if self.narrowed else namespaces,
            hold=Hold(keys=frozenset(contested)),
            removals=removals,
        )
        conflicts = [
            KeyConflict(
                k, wanted[k], node.labels.get(k, ""), WORKER_MANAGER, taken=False
            )
            for k in sorted(contested & wanted.keys())
        ]
        yielded = tuple(sorted((*plan.yielded, *conflicts), key=lambda c: c.key))
        return attrs.evolve(plan, yielded=yielded), mine

    def _done(
        self, plan: LabelsPlan, mine: Mapping[str, str], *, changed: bool
    ) -> Wrote:
        for key in (*plan.added, *plan.changed):
            if self._written.get(key) != mine[key]:
                self._contested.pop(key, None)
            self._written[key] = mine[key]
        for key in plan.removed:
            self._written.pop(key, None)
            self._contested.pop(key, None)
        return Wrote(changed, plan.removed, plan.yielded, plan.outside)

    def _take(self, answer: JsonObject) -> None:
        self._node = OwnNode.from_metadata(metadata_of(answer))

    def _prove_fence(self, node: OwnNode) -> None:
        """Try, without effect, what the admission policy must refuse; once."""
        if self._trusted:
            return
        operations = [patch.same_object(node.uid)]
        if node.bare:
            operations.append(patch.add(("metadata", "labels"), {}))
        operations.append(patch.add(("metadata", "labels", PROBE), "true"))
        try:
            self._client.json_patch(NODES, self._name, operations, dry_run=True)
        except Forbidden as error:
            if error.missing_permission:
                raise
            self._trusted = True
            return
        raise NotFencedError(
            "no admission policy fences this worker: a forbidden label passed a dry"
            " run, so the Node is not written (-trust-unfenced overrides)",
            verb="patch",
            resource="nodes",
            name=self._name,
            retry_after=_ASK_AGAIN,
        )
