"""What shows that Millrace does what the papers claim; the rest of the package runs without it.

- `figures/`: the papers' experiments, declared, with their claims
- `demo/`: Millrace beside stock Spark while a link is silent
- `stock_spark.py`: the same queries in stock Spark, for the demonstration and the benchmarks
- `drawing.py`: pictures by matplotlib, an extra

Comes in: the commands `millrace figures` and `millrace demo`, and `bench`. Goes out: pictures, tables and claims as
files. Nothing else imports this package: it may be deleted whole, with these two commands and `bench`.
"""
