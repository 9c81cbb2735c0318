"""Measure everything and write ``docs/performance.md`` and its figure: ``python benchmarks/performance.py``.

On an idle machine this takes about half an hour. ``--quick`` is a smoke test: small data, few resamples, numbers that
mean nothing.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[0] = str(ROOT)  # this checkout, whatever is installed

from benchmarks.report import main  # noqa: E402

if __name__ == "__main__":
    main()
