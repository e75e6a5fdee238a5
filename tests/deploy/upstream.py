"""Values files as users of upstream's chart have them."""

from typing import Any


def upstreams_values() -> dict[str, Any]:
    """Return every value of upstream's chart, set to its default (spec/master.md 8.5)."""
    probe = dict.fromkeys(["timeoutSeconds", "periodSeconds"])
    common: dict[str, Any] = {
        "enable": True,
        "extraArgs": [],
        "extraEnvs": [],
        "initContainers": [],
        "hostNetwork": False,
        "hostUsers": None,
        "dnsPolicy": "ClusterFirstWithHostNet",
        "port": 8080,
        "podSecurityContext": {},
        "nodeSelector": {},
        "annotations": {},
        "labels": {},
        "serviceAccount": {"create": True, "annotations": {}, "name": None},
        "rbac": {"create": True},
        "revisionHistoryLimit": None,
        "affinity": {},
        "tolerations": [],
        "networkPolicy": {"enabled": False, "egress": [], "ingress": []},
        "livenessProbe": {
            "initialDelaySeconds": 10,
            "failureThreshold": None,
            **probe,
        },
        "readinessProbe": {
            "initialDelaySeconds": 5,
            "failureThreshold": 10,
            "successThreshold": None,
            **probe,
        },
    }
    security = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
    }
    deployment = {
        "deploymentAnnotations": {},
        "replicaCount": 1,
        "podDisruptionBudget": {
            "enable": False,
            "minAvailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }
    return {
        "image": {"repository": "r", "pullPolicy": "Always", "tag": None},
        "imagePullSecrets": [],
        "global": {"imagePullSecrets": []},
        "nameOverride": "",
        "fullnameOverride": "",
        "namespaceOverride": "",
        "featureGates": {},
        "checksumValuesOnly": False,
        "priorityClassName": "",
        "postDeleteCleanup": True,
        "prometheus": {"enable": False, "scrapeInterval": "10s", "labels": {}},
        "master": {
            **common,
            **deployment,
            "config": None,
            "securityContext": security,
            "instance": None,
            "resyncPeriod": None,
            "nfdApiParallelism": None,
            "denyLabelNs": [],
            "extraLabelNs": [],
            "enableTaints": False,
            "resources": {
                "limits": {"memory": "4Gi"},
                "requests": {"cpu": "100m", "memory": "128Mi"},
            },
            "startupProbe": {
                "initialDelaySeconds": None,
                "failureThreshold": 30,
                **probe,
            },
        },
        "worker": {
            **common,
            "config": None,
            "securityContext": security,
            "daemonsetAnnotations": {},
            "ownerRefs": ["pod", "ds"],
            "mountUsrSrc": False,
            "priorityClassName": None,
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": "10%"},
            },
        },
        "topologyUpdater": {
            **common,
            "enable": False,
            "config": None,
            "createCRDs": False,
            "kubeletConfigPath": None,
            "kubeletPodResourcesSockPath": None,
            "updateInterval": "60s",
            "watchNamespace": "*",
            "kubeletStateDir": "/var/lib/kubelet",
            "podSetFingerprint": True,
            "daemonsetAnnotations": {},
            "securityContext": {"runAsUser": 0},
        },
        "gc": {**common, **deployment, "interval": "1h"},
    }
