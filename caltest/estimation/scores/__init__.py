"""Proper scores, accuracy and confidence."""
