"""From a URL path to what it is about."""

from urllib.parse import unquote

import attrs

from nfd.kube import resources
from nfd.kube.resources import Resource
from tests.fakeapi.refusals import no_such_resource


@attrs.frozen
class Route:
    """The resource, and the object in it that a path names ("" for a collection)."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    def verb(self, method: str, *, watch: bool) -> str:
        if method == "GET":
            return ("watch" if watch else "list") if not self.name else "get"
        verbs = {"POST": "create", "PUT": "update", "PATCH": "patch"}
        return verbs.get(method, "delete" if self.name else "deletecollection")


def known() -> dict[tuple[str, str, str], Resource]:
    """The resources served from the start, by group, version and plural."""
    found = [r for r in vars(resources).values() if isinstance(r, Resource)]
    return {(r.group, r.version, r.plural): r for r in found}


def route(path: str, served: dict[tuple[str, str, str], Resource]) -> Route:
    """Take a path apart; what is not served is refused with 404."""
    parts = [unquote(p) for p in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise no_such_resource()
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    resource = served.get((group, version, rest[0]))
    if resource is None or (namespace and not resource.namespaced) or len(rest) > 3:
        raise no_such_resource()
    name, subresource = (*rest[1:], "", "")[:2]
    return Route(resource, namespace, name, subresource)
