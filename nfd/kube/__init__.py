"""A small Kubernetes client: REST, list and watch, leases, events.

Nothing here is imported by a scan; importing this package loads no submodule.
`nfd.kube.connect` is where most programs start.
"""
