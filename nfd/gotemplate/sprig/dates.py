"""Sprig's dates."""

from nfd.gotemplate.functions import Function

FUNCTIONS: dict[str, Function] = {}
