"""The rule language: model, loading, evaluation, policy, explanation, validation."""
