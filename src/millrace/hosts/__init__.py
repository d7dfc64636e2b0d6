"""Who owns the loop and the clock."""
