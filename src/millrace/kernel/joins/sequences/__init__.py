"""kernel joins sequences."""
