"""What queues of updates are made of: cells by key, orders of keys, lines of rows."""
