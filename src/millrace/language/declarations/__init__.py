"""language declarations."""
