"""The software against a real Kubernetes control plane."""
