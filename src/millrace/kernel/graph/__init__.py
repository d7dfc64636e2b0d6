"""kernel graph."""
