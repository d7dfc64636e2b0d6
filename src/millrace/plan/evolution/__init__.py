"""A network that changes: requests to a running one, and a new one that goes on from the state of another.

- `changes`        requests as data: add, drop or alter a query
- `evolution`      which state a changed network keeps, what starts empty, and what is said of it
- `previous_plan`  the parts of the plan that ran, found again by what they compute
- `stream_changes` what of a stream may change, why not where it may not, and what is said of it
- `start_points`   how far streams have come, and where a query starts that joins them

In come two networks and the saved progress of the streams, out goes an `Evolution`. Hosts call it.
"""
