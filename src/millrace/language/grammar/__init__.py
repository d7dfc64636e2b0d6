"""language grammar."""
