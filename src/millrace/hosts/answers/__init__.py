"""hosts answers."""
