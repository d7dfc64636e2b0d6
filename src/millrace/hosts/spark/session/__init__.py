"""hosts spark session."""
