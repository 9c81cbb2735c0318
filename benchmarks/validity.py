"""Measure how often every test rejects calibrated models, and write ``docs/validity.csv`` and ``docs/validity.md``.

``python benchmarks/validity.py --out DIR`` keeps every finished part in DIR, and goes on there when it was stopped; it
takes about an hour on two processors, and 2.6 hours with ``--shares 1 1 1 0.2 2`` of a certificate. ``--replicates``
draws fewer data sets, ``--cells`` selects by a part of a cell's name, ``--page`` writes the page from the data that is
there.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[0] = str(ROOT)  # this checkout, whatever is installed
for library in ("OPENBLAS", "MKL", "OMP", "VECLIB_MAXIMUM"):  # one thread each; NumPy reads it when it is imported
    os.environ[f"{library}_NUM_THREADS"] = "1"

from benchmarks.certificate import main  # noqa: E402

if __name__ == "__main__":
    main()
