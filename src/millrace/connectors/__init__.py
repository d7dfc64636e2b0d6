"""Outside bytes <-> batches: the file connectors `csv`, `json` (one object a line) and `parquet`.

Rules:
- Files are read in name order, rows in file order, in bounded memory.
- Rows come out exactly in the stream's schema; a row that cannot is malformed, and never passes silently.
- What `write_file` writes, `read_file` reads back.
"""

from millrace.connectors.files.formats import FORMATS, FileBatch, extension, list_files, read_file, write_file

__all__ = ["FORMATS", "FileBatch", "extension", "list_files", "read_file", "write_file"]
