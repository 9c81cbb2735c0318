"""Null distributions that are computed exactly or known in the limit."""
