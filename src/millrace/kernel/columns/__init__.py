"""kernel columns."""
