"""Configuration: YAML or JSON text in, frozen settings out, errors with paths."""

DEFAULT_PATH = "/etc/kubernetes/node-feature-discovery/nfd-worker.conf"
