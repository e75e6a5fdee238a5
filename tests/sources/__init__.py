"""Tests of the sources that come with node feature discovery."""
