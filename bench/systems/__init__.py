"""The systems that are measured: our hosts, stock Spark, DuckDB; a queue and a dict; each in its own process."""
