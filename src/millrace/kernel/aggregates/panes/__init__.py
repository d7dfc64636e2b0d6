"""kernel aggregates panes."""
