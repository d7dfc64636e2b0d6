"""kernel updates."""
