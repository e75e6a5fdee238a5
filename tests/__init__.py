"""Tests; this package mirrors the code."""
