"""The master: merges what workers and others report, applies rules, writes Nodes."""
