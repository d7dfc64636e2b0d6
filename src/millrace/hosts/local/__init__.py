"""hosts local."""
