"""hosts virtual."""
