"""What an API server says when it refuses, in its own words."""

from typing import Any

import attrs

from nfd.kube.resources import JsonObject, Resource


@attrs.define(slots=False)
class Refusal(Exception):  # noqa: N818 - it is an answer, not a mistake
    """An answer that is not a success: HTTP status and the Status object's parts."""

    status: int
    reason: str
    message: str
    details: dict[str, Any] = attrs.field(factory=dict)
    headers: dict[str, str] = attrs.field(factory=dict)
    continue_token: str = ""

    def body(self) -> JsonObject:
        """The Status object."""
        metadata = {"continue": self.continue_token} if self.continue_token else {}
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": self.details,
            "code": self.status,
        }


def qualified(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def _details(resource: Resource, name: str) -> dict[str, Any]:
    parts = {"name": name, "group": resource.group, "kind": resource.plural}
    return {k: v for k, v in parts.items() if v}


def not_found(resource: Resource, name: str) -> Refusal:
    message = f'{qualified(resource)} "{name}" not found'
    return Refusal(404, "NotFound", message, _details(resource, name))


def no_such_resource() -> Refusal:
    return Refusal(404, "NotFound", "the server could not find the requested resource")


def already_exists(resource: Resource, name: str) -> Refusal:
    message = f'{qualified(resource)} "{name}" already exists'
    return Refusal(409, "AlreadyExists", message, _details(resource, name))


def conflict(resource: Resource, name: str, why: str = "") -> Refusal:
    why = why or (
        "the object has been modified; please apply your changes to the latest"
        " version and try again"
    )
    message = f'Operation cannot be fulfilled on {qualified(resource)} "{name}": {why}'
    return Refusal(409, "Conflict", message, _details(resource, name))


def forbidden(resource: Resource, name: str, why: str) -> Refusal:
    named = f'{qualified(resource)} "{name}"' if name else qualified(resource)
    message = f"{named} is forbidden: {why}"
    return Refusal(403, "Forbidden", message, _details(resource, name))


def not_permitted(  # noqa: PLR0917 - the message has so many parts
    user: str,
    verb: str,
    resource: Resource,
    subresource: str,
    name: str,
    namespace: str,
) -> Refusal:
    plural = f"{resource.plural}/{subresource}" if subresource else resource.plural
    scope = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    why = (
        f'User "{user}" cannot {verb} resource "{plural}"'
        f' in API group "{resource.group}" {scope}'
    )
    return forbidden(resource, name, why)


def invalid(resource: Resource, name: str, why: str) -> Refusal:
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    message = f'{kind} "{name}" is invalid: {why}'
    return Refusal(422, "Invalid", message, _details(resource, name))


def patch_failed() -> Refusal:
    """A `test` of a JSON patch failed; the real server says no more than this."""
    message = "the server rejected our request due to an error in our request"
    return Refusal(422, "Invalid", message)


def bad_request(message: str) -> Refusal:
    return Refusal(400, "BadRequest", message)


def expired_continue() -> Refusal:
    message = (
        "The provided continue parameter is too old to display a consistent list"
        " result. You can start a new list without the continue parameter."
    )
    return Refusal(410, "Expired", message)


def expired_version(asked: int, oldest: int) -> Refusal:
    message = f"too old resource version: {asked} ({oldest})"
    return Refusal(410, "Expired", message)


def no_streaming_lists() -> Refusal:
    message = (
        'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden:'
        " sendInitialEvents is forbidden for watch unless the WatchList feature gate"
        " is enabled"
    )
    return Refusal(422, "Invalid", message)


def unauthorized() -> Refusal:
    return Refusal(401, "Unauthorized", "Unauthorized")
