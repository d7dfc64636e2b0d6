"""hosts spark exchange."""
