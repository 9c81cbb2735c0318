"""What is judged: predictions and labels, seen through a lens and cut into cells."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
