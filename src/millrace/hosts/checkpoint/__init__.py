"""hosts checkpoint."""
