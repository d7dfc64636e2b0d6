"""plan updates."""
