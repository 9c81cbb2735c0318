"""Options that tests share: the null hypothesis, the number of draws and the level, beside those of all functions."""

from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

from caltest.predictions._sample import Sample
from caltest.predictions.inputs._options import (
    AlphaOption,
    DataOptions,
    DesignOptions,
    InputOption,
    LensOption,
    Option,
    ReadOptions,
    RegionOption,
    TimeOptions,
    WorkOptions,
)
from caltest.resampling.draws._schemes import Consistency, validate_resampling
from caltest.resampling.engine._stopping import USUAL_DRAWS, Stopping


class NullOption(TypedDict, total=False):
    """Which hypothesis is tested."""

    resampling: Annotated[
        Consistency,
        Option(
            "Consistency, optional",
            "The null hypothesis, and what is simulated. ``Consistency()`` by default: predictions fixed, labels "
            "simulated.",
            validate=lambda value, name: validate_resampling(Consistency() if value is None else value),
        ),
    ]


class DrawOption(TypedDict, total=False):
    """How much is drawn."""

    n_resamples: Annotated[
        int | None,
        Option(
            "int, optional",
            "Number of draws B; the smallest possible p-value is 1 / (B + 1). By default 9,999, and for more than "
            "5,000,000 predicted probabilities (observations times outcomes behind the lens) at most 999, which stop "
            "after 100 exceedances. Not used where nothing is drawn.",
        ),
    ]


class ExceedanceOption(TypedDict, total=False):
    """When draws stop early."""

    n_exceedances: Annotated[
        int | None,
        Option(
            "int, optional",
            "Number h of draws at least as extreme as the observed data after which the draws stop, looked at in "
            "rounds that are fixed beforehand (Besag and Clifford 1991). The p-value stays valid at every sample "
            "size; its relative standard error is about the square root of 1 / h. By default all draws are made, "
            "unless the data are large.",
        ),
    ]


class CrossValidationOptions(LensOption, RegionOption, AlphaOption, WorkOptions, total=False):
    """What tests take that make their predictions themselves."""


class RevisionOptions(ReadOptions, AlphaOption, total=False):
    """What the test of revisions takes, which needs the forecasts of an event and draws nothing."""


class PlanOptions(InputOption, AlphaOption, WorkOptions, total=False):
    """What plans of tests take."""


class PrecisionOptions(InputOption, AlphaOption, total=False):
    """What plans of intervals take, which draw nothing."""


class DetectionOptions(DesignOptions, DrawOption, PlanOptions, total=False):
    """What tests without labels take."""


class LabelOptions(DesignOptions, TimeOptions, DrawOption, AlphaOption, WorkOptions, total=False):
    """What tests of several labels of each observation take."""


class ClinicalOptions(ReadOptions, DesignOptions, DrawOption, AlphaOption, WorkOptions, total=False):
    """What the validation of predicted risks takes."""


class FittedOptions(ReadOptions, DrawOption, AlphaOption, WorkOptions, total=False):
    """What tests take of a model on the labels that it was fitted to."""


class TestOptions(LensOption, DataOptions, DrawOption, AlphaOption, WorkOptions, total=False):
    """What all tests take."""


class NullTestOptions(NullOption, TestOptions, total=False):
    """What tests take that know other hypotheses than calibration."""


class SharedDrawOptions(
    DataOptions, DesignOptions, TimeOptions, DrawOption, ExceedanceOption, AlphaOption, WorkOptions, total=False
):
    """What several tests of calibration on the same draws take."""


class TableOptions(
    DataOptions, DesignOptions, NullOption, DrawOption, AlphaOption, WorkOptions, ExceedanceOption, total=False
):
    """What several tests of any hypothesis on the same draws take."""


class DesignedTestOptions(LensOption, TableOptions, TimeOptions, total=False):
    """What tests take that know weights, groups and times."""


def drawing_of(options: Mapping[str, Any], sample: Sample, usual: int = USUAL_DRAWS) -> dict[str, Any]:
    """Return how the engine draws for a sample: the number of draws, where that is left open, and how work is done."""
    asked = options["n_resamples"], options.get("n_exceedances")
    stopping = Stopping.of(*asked, sample.given.size, usual=usual)
    return {"n_resamples": stopping, "workers": options["workers"], "rng": options["rng"]}
