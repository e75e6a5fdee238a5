"""Tests of the cpu source."""
