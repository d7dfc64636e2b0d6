"""kernel updates windows."""
