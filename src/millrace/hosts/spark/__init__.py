"""The Spark host: one streaming query per network, the kernel inside its tasks."""
