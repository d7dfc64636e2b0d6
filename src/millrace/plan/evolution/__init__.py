"""plan evolution."""
