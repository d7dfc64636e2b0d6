"""connectors files."""
