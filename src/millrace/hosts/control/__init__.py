"""hosts control."""
