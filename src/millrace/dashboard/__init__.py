"""What the live page shows: a run as frames, its last hour, and the files of the page itself.

- `frames`         a report and what holds results back -> one frame: plain data, with rates
- `frame_history`  the frames of the last hour in bounded memory, and their curves
- `sampler`        a thread that takes a frame every second and tells those who follow
- `plan_difference`  what a change makes of the query graph
- `page_files`     the files of the page: HTML, style, modules, and the libraries in `static/vendor`

In come a `Report` and a `Lag` of any host, out goes JSON; nothing here changes a run. `api/http` answers with it. The
page is plain modules below `static/`, without a build step; it asks its own server alone.
"""
