"""hosts spark sink."""
