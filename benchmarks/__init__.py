"""How fast the package is: ``python benchmarks/performance.py``."""

import os

for _library in ("OPENBLAS", "MKL", "OMP", "VECLIB_MAXIMUM"):  # one thread each, set before NumPy is imported
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
