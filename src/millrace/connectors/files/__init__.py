"""Files of streams and sinks: csv, json (one object per line) and parquet.

- `input_files` lists the files of a stream by their names, and opens their bytes uncompressed.
- `file_input` reads a stream's files from a position that can be kept; `pieces/` says what it reads next, and fails if
  a file that was read has changed since (`file_stamp` says how that is found).
- `path_patterns` says whether a stream would read what a sink is going to write.
- `file_reader` reads a file of any format in bounded memory, as batches in the declared schema.
- `csv_reader` (with `csv_records`), `json_reader` and `parquet_reader` yield `file_blocks`: good rows, and what is
  wrong with the others.
- `text_lines` cuts text into whole lines, none longer than a limit.
- `conversion` brings columns to their declared types, and finds the cells that do not fit; `times/` reads times.
- `file_writer` writes a table as one file; what it writes, `file_reader` reads back.
- `file_options` has the formats, and the options that each takes.
"""
