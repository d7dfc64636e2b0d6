"""The entry point of the command line: Ctrl-C ends it silently, even while modules are still being loaded."""

from __future__ import annotations

import sys


def main() -> int:
    """Carry out the command of this process; the exit code."""
    try:
        from millrace.commands import command_line

        return command_line.main()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
