"""Kubeconfig files: servers, tokens and certificates read here, plug-ins elsewhere."""

import base64
import binascii
import os
from collections.abc import Mapping
from typing import Any

import attrs

from nfd.errors import ConfigError
from nfd.kube.config import TokenFile
from nfd.kube.transport import Connection


def paths(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the files of $KUBECONFIG that exist, else `~/.kube/config` if it does."""
    named = [p for p in environ.get("KUBECONFIG", "").split(os.pathsep) if p]
    home = environ.get("HOME", "")
    default = [os.path.join(home, ".kube", "config")] if home else []
    return [p for p in (named or default) if os.path.exists(p)]


def load(*files: str, context: str = "") -> Connection:
    """Return the connection of a context, by default the current one.

    Of several files the first that defines a name wins, as in kubectl. Users whose
    credentials come from a program or a provider (`exec`, `auth-provider`) go
    through the official `kubernetes` package.

    Raises:
        ConfigError: A file or entry is missing or wrong; the text names both.

    """
    merged = _merge(files)
    name = context or merged.current
    where = f"{os.pathsep.join(files)}: "
    if not name:
        raise ConfigError(f"{where}current-context: not set")
    chosen = _entry(where, merged.contexts, "contexts", name)
    cluster = _entry(where, merged.clusters, "clusters", chosen.text("cluster"))
    user = _Entry("user", "", {})
    if chosen.text("user"):
        user = _entry(where, merged.users, "users", chosen.text("user"))
    cluster.refuse("proxy-url")
    user.refuse("as", "as-uid", "as-groups", "as-user-extra")
    connection = Connection(
        server=cluster.need("server"),
        ca_file=cluster.file("certificate-authority"),
        ca_data=cluster.data("certificate-authority-data"),
        insecure=cluster.fields.get("insecure-skip-tls-verify") is True,
        server_name=cluster.text("tls-server-name"),
        cert_file=user.file("client-certificate"),
        key_file=user.file("client-key"),
        cert_data=user.data("client-certificate-data"),
        key_data=user.data("client-key-data"),
        username=user.text("username"),
        password=user.text("password"),
        namespace=chosen.text("namespace"),
    )
    if user.fields.get("exec") or user.fields.get("auth-provider"):
        from nfd.kube.official import credentials  # noqa: PLC0415 - heavy and rare

        return credentials(connection, files, name)
    if user.text("token"):
        return attrs.evolve(connection, token=lambda: user.text("token"))
    if user.text("tokenFile"):
        return attrs.evolve(connection, token=TokenFile(user.file("tokenFile")))
    return connection


@attrs.frozen(slots=True)
class _Entry:
    """A named part of a file; paths in it are relative to the file's folder."""

    where: str
    folder: str
    fields: Mapping[str, Any]

    def text(self, key: str) -> str:
        value = self.fields.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ConfigError(f"{self.where}.{key}: not text")
        return value

    def need(self, key: str) -> str:
        if not self.text(key):
            raise ConfigError(f"{self.where}.{key}: not set")
        return self.text(key)

    def refuse(self, *keys: str) -> None:
        for key in keys:
            if self.fields.get(key):
                raise ConfigError(f"{self.where}.{key}: not supported")

    def file(self, key: str) -> str:
        path = self.text(key)
        return os.path.join(self.folder, path) if path else ""

    def data(self, key: str) -> str:
        try:
            return base64.b64decode(self.text(key), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError) as error:
            raise ConfigError(f"{self.where}.{key}: no base64 of PEM text") from error


@attrs.define(slots=True)
class _Merged:
    current: str = ""
    clusters: dict[str, _Entry] = attrs.field(factory=dict)
    contexts: dict[str, _Entry] = attrs.field(factory=dict)
    users: dict[str, _Entry] = attrs.field(factory=dict)


def _merge(files: tuple[str, ...]) -> _Merged:
    merged = _Merged()
    for path in files:
        content = _read(path)
        merged.current = merged.current or str(content.get("current-context") or "")
        folder = os.path.dirname(os.path.abspath(path))
        for kind, into in (
            ("clusters", merged.clusters),
            ("contexts", merged.contexts),
            ("users", merged.users),
        ):
            for item in content.get(kind) or []:
                name, fields = _named(item, kind.removesuffix("s"))
                if fields is None:
                    raise ConfigError(f"{path}: {kind}: an entry has the wrong shape")
                into.setdefault(name, _Entry(f"{path}: {kind}[{name}]", folder, fields))
    return merged


def _named(item: Any, kind: str) -> tuple[str, Mapping[str, Any] | None]:
    if not isinstance(item, dict):
        return "", None
    fields = item.get(kind) or {}
    return str(item.get("name", "")), fields if isinstance(fields, dict) else None


def _read(path: str) -> Mapping[str, Any]:
    import yaml  # noqa: PLC0415 - only where a file is given

    try:
        with open(path, encoding="utf-8") as file:
            content = yaml.load(file, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe loaders
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: no YAML: {error}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: no kubeconfig")
    return content


def _entry(where: str, entries: Mapping[str, _Entry], kind: str, name: str) -> _Entry:
    try:
        return entries[name]
    except KeyError:
        raise ConfigError(f"{where}{kind}: no entry named {name!r}") from None
