"""plan nodes."""
