"""language joins."""
