"""Compiled code: arrays in, arrays out.

Each file is self-contained, because Numba's cache does not see an edit in another file.
"""
