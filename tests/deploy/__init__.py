"""What is shipped for clusters: CRDs, chart, overlays."""
