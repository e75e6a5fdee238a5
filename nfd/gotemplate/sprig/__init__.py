"""The deterministic functions of sprig v3.3.0, with its names and semantics."""
