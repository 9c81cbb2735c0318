"""What the results of studies have in common: a summary as a frame, ranks, and figures."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from caltest.predictions._arrays import Floats
from caltest.results import Result
from caltest.results._description import Table

if TYPE_CHECKING:
    import pandas as pd

CLEAR = 4.0
"""Standard errors by which a difference must exceed chance."""


def rank(estimates: pd.DataFrame) -> pd.DataFrame:
    """Return ranks by mean squared error; see `BiasStudy.ranking`.

    ``estimates`` has one row for each model, lens, number of samples, statistic and replicate with ``value``,
    ``truth``, ``truth_se`` and ``target``.
    """
    import pandas as pd

    rows = []
    known = estimates[estimates["truth"].notna()]
    # A calibrated model has the truth 0 for every distance: estimates of an error and of its square are not compared.
    for key, group in known.groupby(["model", "lens", "n_samples", "target", "truth"], sort=False):
        wide = group.pivot_table(index="replicate", columns="test_statistic", values="value", sort=False)
        value, truth = wide.to_numpy(), float(group["truth"].iloc[0])
        difference, error = _differences(value - truth, float(group["truth_se"].iloc[0]))
        better = difference > CLEAR * error  # [i, j]: j is better than i
        mse = np.square(value - truth).mean(axis=0)
        rows += [
            dict(zip(("model", "lens", "n_samples"), key[:3], strict=True))
            | {"test_statistic": wide.columns[i], "rank": 1 + int(better[i].sum()), "rmse": np.sqrt(mse[i])}
            | {"excess": difference[i, mse.argmin()], "excess_se": error[i, mse.argmin()], "target": key[3]}
            for i in np.argsort(mse, kind="stable")
        ]
    names = ["model", "lens", "n_samples", "test_statistic", "rank", "rmse", "excess", "excess_se", "target"]
    return pd.DataFrame(rows, columns=names)


def _differences(deviation: Floats, truth_se: float) -> tuple[Floats, Floats]:
    """Return differences of mean squared errors and their standard errors, both ``(n_statistics, n_statistics)``."""
    square, mean = np.square(deviation), deviation.mean(axis=0)
    paired = square[:, :, None] - square[:, None, :]
    scatter = paired.std(axis=0, ddof=1) / np.sqrt(len(deviation))
    return paired.mean(axis=0), np.hypot(scatter, 2 * np.abs(mean[:, None] - mean) * truth_se)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Study(Result):
    """Result of a simulation: the values of many data sets, and their summary."""

    _derived: ClassVar[tuple[str, ...]] = ("summary", "conclusion")

    def __repr__(self) -> str:
        """Return a line about the frames, which are too large for the code that makes a study."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        frames = {name: value for name, value in values.items() if hasattr(value, "columns")}
        sizes = ", ".join(f"{name} {len(frame)} x {len(frame.columns)}" for name, frame in frames.items())
        return f"<{type(self).__name__}: {sizes}>"

    @property
    @abstractmethod
    def conclusion(self) -> str:
        """What the study found, in words."""

    @property
    def summary(self) -> pd.DataFrame:
        """The frame that `to_frame` returns by default."""
        return self.to_frame()

    def _title(self, kind: str, frame: pd.DataFrame, design: Sequence[str] = ("model", "lens")) -> str:
        """Return the title of a printed study: its kind, what all rows of its frame share, and how many data sets."""
        same = [str(frame[column].iloc[0]) for column in design if column not in varying(frame, design)]
        least, most = (f"{count:,}" for count in (frame["n_replicates"].min(), frame["n_replicates"].max()))
        sets = least if least == most else f"{least} to {most}"
        return f"{kind} ({', '.join([*filter(None, same), f'{sets} data sets each'])})"


_HEADS = {"n_samples": "observations", "test_statistic": "statistic"}


def frame_table(frame: pd.DataFrame, columns: Iterable[str] | Mapping[str, str], right: Collection[str] = ()) -> Table:
    """Return columns of a frame as a table of texts; a mapping says how they are headed.

    Words are aligned to the left, except in the columns ``right``.
    """
    names = columns if isinstance(columns, Mapping) else {name: _HEADS.get(name, name) for name in columns}
    values = {head: frame[column].tolist() for column, head in names.items()}
    words = {head for head, column in values.items() if any(isinstance(value, str) for value in column)}
    rows = zip(*(map(_text, column) for column in values.values()), strict=True)
    return Table(tuple(values), list(rows), left=tuple(words.difference(right)))


def _text(value: Any) -> str:
    """Return a value as a table shows it: an empty cell where nothing is known."""
    if value is None or value != value:  # noqa: PLR0124  # NaN
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}" if isinstance(value, float) else str(value)


def varying(frame: pd.DataFrame, columns: Iterable[str]) -> list[str]:
    """Return those columns that hold more than one value; a table needs no others."""
    return [column for column in columns if frame[column].nunique(dropna=False) > 1]


def share_error(share: Any, count: Any) -> Any:
    """Return the binomial standard error of a share of so many data sets."""
    return np.sqrt(share * (1 - share) / count)
