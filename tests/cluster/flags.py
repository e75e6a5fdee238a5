"""Command lines of the control plane's programs."""

import json
from pathlib import Path

from tests.cluster.audit import AUDIT_POLICY
from tests.cluster.certificates import Pair

ISSUER = "https://kubernetes.default.svc"


def etcd(data: Path, port: int, peer: int) -> list[str]:
    """One member that may lose its data with the machine, which makes it fast."""
    client_url, peer_url = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
    return [
        f"--data-dir={data}",
        f"--listen-client-urls={client_url}",
        f"--advertise-client-urls={client_url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=default={peer_url}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def api_server(
    port: int, etcd_port: int, ca: Path, serving: Pair, tokens: Pair
) -> list[str]:
    """Certificates and service-account tokens for users, RBAC and the Node authorizer."""
    return [
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",  # refuses loopback addresses
        "--service-cluster-ip-range=10.0.0.0/24",
        f"--tls-cert-file={serving.certificate}",
        f"--tls-private-key-file={serving.key}",
        f"--client-ca-file={ca}",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-key-file={tokens.certificate}",
        f"--service-account-signing-key-file={tokens.key}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
    ]


def audit(policy: Path, log: Path) -> list[str]:
    """Write every request to `log` before it is done; writes the policy file."""
    policy.write_text(json.dumps(AUDIT_POLICY))
    return [
        f"--audit-policy-file={policy}",
        f"--audit-log-path={log}",
        "--audit-log-mode=blocking",
    ]


def loop(port: int, kubeconfig: Path, serving: Pair) -> list[str]:
    """What controller manager and scheduler share; nobody else wants to lead."""
    return [
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={serving.certificate}",
        f"--tls-private-key-file={serving.key}",
        f"--kubeconfig={kubeconfig}",
    ]


def controller_manager(ca: Path, key: Path, *, kubelets: bool) -> list[str]:
    """All controllers; the one for dead nodes only where `kubelets` keep them alive."""
    return [
        f"--service-account-private-key-file={key}",
        f"--root-ca-file={ca}",
        "--use-service-account-credentials=true",
        f"--controllers=*{'' if kubelets else ',-node-lifecycle-controller'}",
    ]


def kwok(port: int, stages: Path, kubeconfig: Path) -> list[str]:
    """Play the kubelet of every Node, with Leases so that they stay ready."""
    return [
        f"--config={stages}",
        f"--kubeconfig={kubeconfig}",
        "--manage-all-nodes=true",
        f"--server-address=127.0.0.1:{port}",
        "--node-lease-duration-seconds=40",
    ]
