"""Which rejection rates of the certificate are no evidence against validity, from its data alone."""

import io

import numpy as np
import pandas as pd
from scipy.stats import binom

ERROR = 0.001
"""Probability, at most, that any of the valid tests exceeds its limit by chance."""
LEVELS = (0.01, 0.05, 0.1)
COLUMNS = {level: f"rejected_{100 * level:.0f}pct" for level in LEVELS}
VALID = ("Monte Carlo", "exact distribution", "finite-sample bound")


def read(text: str) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the rows of the data file and the facts of its first line."""
    first, _, rest = text.partition("\n")
    facts = dict(fact.split(": ") for fact in first.removeprefix("# ").split("; "))
    return pd.read_csv(io.StringIO(rest), keep_default_na=False), facts


def limits(frame: pd.DataFrame, error: float = ERROR) -> dict[float, np.ndarray]:
    """Return the largest count of each row that is no evidence, by level; ``error`` is shared by the valid tests."""
    each = error / max(len(LEVELS) * int(frame["null"].isin(VALID).sum()), 1)
    return {level: binom.isf(each, frame["n_replicates"], level).astype(int) for level in LEVELS}


def exceeding(frame: pd.DataFrame, error: float = ERROR) -> pd.DataFrame:
    """Return for every row and level whether the count lies above its limit."""
    bounds = limits(frame, error)
    return pd.DataFrame({level: frame[COLUMNS[level]] > bounds[level] for level in LEVELS}, index=frame.index)
