"""language updates."""
