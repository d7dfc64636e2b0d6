"""language windows."""
