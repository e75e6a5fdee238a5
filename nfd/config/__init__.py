"""Configuration: YAML or JSON text in, frozen settings out, errors with paths."""
