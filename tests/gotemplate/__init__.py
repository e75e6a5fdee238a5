"""Tests of the template engine."""
