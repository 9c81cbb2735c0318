"""Options that studies share: how they run, what they look at, and how their tests find p-values."""

import os
from collections.abc import Mapping, Sequence
from typing import Annotated, TypedDict

from caltest.predictions._lens import LensLike
from caltest.predictions.inputs._options import Option, WorkOptions
from caltest.resampling.engine._options import NullOption
from caltest.resampling.engine._stopping import number_of_draws

PathLike = str | os.PathLike[str]
LEVELS = (0.01, 0.05, 0.1)


class RunOptions(WorkOptions, total=False):
    """How a study runs."""

    out: Annotated[
        PathLike | None,
        Option(
            "path, optional",
            "Folder in which every finished part is kept; with the same folder an interrupted study continues.",
        ),
    ]


class StudyOptions(RunOptions, total=False):
    """How a study runs, and what it looks at."""

    lenses: Annotated[
        LensLike | Sequence[LensLike] | Mapping[str, LensLike] | None,
        Option("lens, sequence or mapping, optional", "What to look at."),
    ]


class _TestingOptions(TypedDict, total=False):
    n_resamples: Annotated[
        int,
        Option(
            "int, optional",
            "Number of draws B of a test that is named by a statistic; 999 by default.",
            validate=lambda value, name: number_of_draws(value),
        ),
    ]
    method: Annotated[
        str,
        Option(
            '{"auto", "exact", "monte-carlo", "asymptotic"}',
            "How such a test finds its null distribution, as in `caltest.calibration_test`.",
            "auto",
        ),
    ]


class TestStudyOptions(NullOption, _TestingOptions, StudyOptions, total=False):
    """What studies of tests take."""

    levels: Annotated[Sequence[float], Option("sequence of float", "Levels at which rejections are counted.", LEVELS)]


class SampleSizeOptions(NullOption, _TestingOptions, WorkOptions, total=False):
    """How the test of `sample_size` finds its p-value, and how work is done."""
