"""How fast the package is: ``python benchmarks/performance.py``."""
