"""hosts sinks."""
