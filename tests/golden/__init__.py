"""Whole recorded hosts against recorded answers."""
