"""Tests of `nfd.kube`."""
