"""hosts why."""
