"""kernel stores."""
