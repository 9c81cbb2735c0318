"""How good are the methods? Models with known truth, and studies of estimates and tests on them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
