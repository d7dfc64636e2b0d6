"""connectors generators."""
