"""hosts spark commit_log."""
