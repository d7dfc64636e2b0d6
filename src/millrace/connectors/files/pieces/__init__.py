"""Which pieces of a stream's files are read next: new files in their order, and what old ones have gained.

- `file_piece` is a range of a file's bytes, and what it was when it was read.
- `piece_end` says up to where a file that is still written can be read.
- `piece_finder` finds the pieces that have not been read, and fails if files that were read have changed.

In: the paths of a stream's files, and the pieces that were read. Out: pieces in the order in which they are read.
"""
