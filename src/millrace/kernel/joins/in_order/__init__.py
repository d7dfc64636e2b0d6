"""kernel joins in_order."""
