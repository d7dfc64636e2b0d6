"""kernel relational."""
