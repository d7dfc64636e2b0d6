"""Panes: what a window aggregate holds, and how windows are made of it.

A row falls into one pane, the greatest common divisor of a window's range and slide; a window is a sequence of panes.

- window_geometry.py: times to panes, panes to windows, windows to their bounds
- clock_windows.py: the same for windows by the clock or the calendar of a time zone
- zone_clock.py: that clock, as a scale which never goes back
- panes.py: partials by pane, closed by the bound of the stream
- pane_meter.py: what rows and partials take, for the choice between them
- shared_panes.py: how sliding windows share panes
- grouped_panes.py: the same where single groups have bounds of their own
- pair_panes.py: the same where promises are about pairs of times
- window_results.py: closed windows as a batch of results

In: rows tagged with their pane, and bounds. Out: tables of closed windows, with their partials.
"""
