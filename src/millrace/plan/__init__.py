"""Bound statements as data, and the way from them to stages of query graphs."""
