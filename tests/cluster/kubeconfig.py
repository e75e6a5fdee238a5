"""Kubeconfig files for one user each."""

import json
from collections.abc import Mapping
from pathlib import Path

from tests.cluster.certificates import Pair


def certificate_user(pair: Pair) -> dict[str, str]:
    """Describe a user known by certificate."""
    return {
        "client-certificate": str(pair.certificate),
        "client-key": str(pair.key),
    }


def write_kubeconfig(path: Path, url: str, ca: Path, user: Mapping[str, str]) -> Path:
    """Write a kubeconfig whose only context is that user at that server."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "test",
                "cluster": {"server": url, "certificate-authority": str(ca)},
            }
        ],
        "users": [{"name": "user", "user": dict(user)}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "user"}}],
        "current-context": "test",
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(document, indent=1))  # JSON is YAML
    return path
