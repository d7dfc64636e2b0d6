"""What a run tells monitoring systems.

- `metric_table`  every metric: its name, type, help, labels, and how it is read from a report
- `exposition`    the metrics of a report as Prometheus text

In comes a `Report`, out goes text; `api/http` serves it at /metrics. docs/monitoring.md has the table for people.
"""
