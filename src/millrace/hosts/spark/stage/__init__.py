"""hosts spark stage."""
