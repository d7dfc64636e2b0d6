"""kernel baselines."""
