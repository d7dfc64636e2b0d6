"""kernel joins any_order."""
