"""plan physical."""
