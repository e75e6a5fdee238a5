"""Tests of HostRoot."""
