"""kernel joins."""
