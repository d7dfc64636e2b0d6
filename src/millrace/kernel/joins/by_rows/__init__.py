"""kernel joins by_rows."""
