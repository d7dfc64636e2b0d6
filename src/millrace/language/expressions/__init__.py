"""language expressions."""
