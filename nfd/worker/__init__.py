"""The worker: looks at its host again and again and publishes what it finds."""
