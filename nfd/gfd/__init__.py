"""The agent `gpu-feature-discovery`: labels of NVIDIA GPUs into a file or an object."""
