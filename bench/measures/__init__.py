"""What is measured and checked: speeds and ratios, answers, staleness, memory, what Spark has written, and the log."""
