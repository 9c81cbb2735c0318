"""Options that comparisons of models share, beside those of all functions."""

from typing import Annotated, Any, TypedDict

from caltest.predictions.cells._trees import VarianceTree
from caltest.predictions.inputs._options import (
    AlphaOption,
    ClassesOption,
    DesignOptions,
    LensOption,
    Option,
    ReadOptions,
    TimeOptions,
    WorkOptions,
)
from caltest.predictions.inputs._validation import validate_choice, validate_level
from caltest.resampling.engine._stopping import number_of_draws

VARIANCES = ("asymptotic", "bootstrap")
"""How the variance of a difference is found."""


class DrawsOption(TypedDict, total=False):
    """How much is drawn for each model."""

    n_resamples: Annotated[
        int,
        Option(
            "int, optional",
            "Number of draws of each test, and number of bootstrap samples; 999 by default.",
            validate=lambda value, name: number_of_draws(value),
        ),
    ]


class PartitionOption(TypedDict, total=False):
    """In which cells l2 errors are estimated."""

    partition: Annotated[
        Any,
        Option(
            "Partition or callable, optional",
            "Cells (bins), fitted to the predictions of each model; ``VarianceTree()`` by default.",
            validate=lambda value, name: VarianceTree() if value is None else value,
        ),
    ]


class PairOptions(ReadOptions, LensOption, PartitionOption, DrawsOption, WorkOptions, total=False):
    """What comparisons of models take."""

    alpha: Annotated[
        float, Option("float", "Level of the decisions; intervals have the level 1 - ``alpha``.", 0.05, validate_level)
    ]
    variance: Annotated[
        str,
        Option(
            '{"asymptotic", "bootstrap"}',
            "How the variance of a difference is found, as in `paired_test`.",
            "asymptotic",
            lambda value, name: validate_choice(value, name, VARIANCES),
        ),
    ]


class DesignedPairOptions(PairOptions, DesignOptions, TimeOptions, total=False):
    """What comparisons take that know weights, groups and times."""


class TrackOptions(ClassesOption, LensOption, DesignOptions, DrawsOption, AlphaOption, WorkOptions, total=False):
    """What is the same for every epoch of a training."""


class StudyOptions(
    ReadOptions, LensOption, PartitionOption, DesignOptions, TimeOptions, AlphaOption, WorkOptions, total=False
):
    """What a study of recalibration methods takes."""
