"""plan explain."""
