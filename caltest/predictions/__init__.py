"""What is judged: predictions and labels, seen through a lens and cut into cells."""

from caltest.results._other_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
