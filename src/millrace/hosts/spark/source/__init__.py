"""hosts spark source."""
