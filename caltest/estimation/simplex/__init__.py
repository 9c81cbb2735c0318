"""Reliability of three or four classes."""
