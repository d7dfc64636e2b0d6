"""What the tests of this folder share."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = str(Path(__file__).parent)

# The toys are imported by name.
sys.path.insert(0, HERE)
