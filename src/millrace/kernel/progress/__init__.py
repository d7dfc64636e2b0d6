"""kernel progress."""
