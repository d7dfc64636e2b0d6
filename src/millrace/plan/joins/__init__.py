"""plan joins."""
