"""What a run tells monitoring systems.

- `metric_table`  every metric: its name, type, help, labels, and how it is read from a report
- `exposition`    the metrics of a report as Prometheus text
- `open_telemetry`  the same for OpenTelemetry, if its library is installed

In comes a `Report`, out go text and instruments; `api/http` serves the text at /metrics. The table for
people is in docs/monitoring.md.
"""
