"""Extended resources: what to write into capacity and allocatable (spec/master.md 2.8).

Pure.
"""

from typing import Literal

from nfd.kube import patch
from nfd.kube.patch import Operation
from nfd.master.state import NodeState, Part, Tracking, Wanted
from nfd.publish.ownership import MapPlan, plan_map, tracked_keys
from nfd.quantity import Quantity, QuantityError


def plan_resources(
    node: NodeState,
    wanted: Wanted,
    tracking: Tracking,
    foreign: Literal["take", "yield"],
) -> Part:
    """Plan capacity and allocatable together; equal quantities cost no write.

    Capacity decides. What we own is kept equal in allocatable too, since a kubelet
    that restarts sets resources that it does not know to zero.
    """
    owned = tracked_keys(node.annotations.get(tracking.resources))
    if node.capacity is None or node.allocatable is None:
        return Part(MapPlan(owned=owned))
    planned = plan_map(
        node.capacity,
        wanted.resources,
        owned,
        managers={k: "kubelet" for k in node.capacity if k not in owned},
        ours=frozenset(),
        foreign=foreign,
        hold=wanted.hold,
        equal=same_quantity,
    )
    ops: list[Operation] = []
    for place, current in (
        ("capacity", node.capacity),
        ("allocatable", node.allocatable),
    ):
        write = {
            k: wanted.resources[k]
            for k in planned.owned
            if k in wanted.resources
            and not same_quantity(current.get(k, ""), wanted.resources[k])
        }
        change = MapPlan(
            add={k: v for k, v in write.items() if k not in current},
            replace={k: (current[k], v) for k, v in write.items() if k in current},
            remove={k: current[k] for k in planned.remove if k in current},
        ).operations("status", place)
        if change and not current:
            at = ("status", place)
            ops += [patch.expect(at, None), patch.add(at, {})]
        ops += change
    return Part(planned, ops)


def same_quantity(left: str, right: str) -> bool:
    """Tell whether two texts are the same quantity: `2Gi` is `2147483648`."""
    if left == right:
        return True
    try:
        return Quantity.parse(left) == Quantity.parse(right)
    except QuantityError:
        return False
