"""Measure which test detects what, and write ``docs/power.csv``, ``docs/power.md`` and the power curves.

``python benchmarks/power.py --out DIR`` keeps every finished part in DIR, and goes on there when it was stopped; with
400 data sets it takes about an hour of processor time. ``--only "3 classes"`` measures a part, ``--only curves`` the
pictures, ``--page`` writes the page from the data, ``--candidates`` prints other candidates for the default test.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[0] = str(ROOT)  # this checkout, whatever is installed
os.environ.setdefault("MPLBACKEND", "Agg")
for library in ("OPENBLAS", "MKL", "OMP", "VECLIB_MAXIMUM"):  # one thread each; NumPy reads it when it is imported
    os.environ[f"{library}_NUM_THREADS"] = "1"

from benchmarks.alternatives import main  # noqa: E402

if __name__ == "__main__":
    main()
