"""kernel aggregates."""
