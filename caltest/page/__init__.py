"""The page that sums a model up: one self-contained HTML file for readers without Python."""

from caltest.results._other_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
