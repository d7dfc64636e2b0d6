"""language select."""
