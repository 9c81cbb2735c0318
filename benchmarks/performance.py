"""Measure everything and write ``docs/performance.md`` with its figure, and ``docs/speed-targets.md``.

    python benchmarks/performance.py

On an idle machine this takes about half an hour. ``--quick`` is a smoke test: small data, few resamples, numbers that
mean nothing.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[0] = str(ROOT)  # this checkout, whatever is installed
for library in ("OPENBLAS", "MKL", "OMP", "VECLIB_MAXIMUM"):  # one thread each; NumPy reads it when it is imported
    os.environ[f"{library}_NUM_THREADS"] = "1"

from benchmarks.report import main  # noqa: E402

if __name__ == "__main__":
    main()
