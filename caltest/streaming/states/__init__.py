"""Mergeable states of predictions and outcomes."""
