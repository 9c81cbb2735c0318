"""Options that estimates share, and what they look at."""

from collections.abc import Mapping
from typing import Annotated, Any

from numpy.typing import ArrayLike, NDArray

from caltest.predictions._arrays import Integers
from caltest.predictions._lens import LensLike, lens_name
from caltest.predictions._lenses import Canonical, Confidence
from caltest.predictions._sample import Sample, induce
from caltest.predictions.inputs._options import (
    AlphaOption,
    DataOptions,
    DesignOptions,
    InputOption,
    LensOption,
    Option,
    ReadOptions,
    TimeOptions,
    WeightOption,
    WorkOptions,
)
from caltest.predictions.inputs._refusals import refuse_if
from caltest.predictions.inputs._validation import (
    refuse_crossed,
    validate_design,
    validate_given_problem,
    validate_problem,
)
from caltest.resampling.engine._options import NullOption
from caltest.results._naming import describe
from caltest.statistics import ECE, Statistic
from caltest.statistics._base import default_lens, validate_estimate

_CONFIDENCE = Confidence()


class EventOptions(DataOptions, total=False):
    """What is looked at where there are two outcomes."""

    lens: Annotated[
        LensLike | None,
        Option(
            "lens, optional",
            "A lens with two outcomes; by default `Confidence()`, or the event itself for two classes.",
        ),
    ]


class TestedEventOptions(EventOptions, AlphaOption, WorkOptions, total=False):
    """What curves take that show a test."""


class DesignedEventOptions(EventOptions, DesignOptions, TimeOptions, NullOption, total=False):
    """What curves take that know weights, groups, times and other hypotheses."""


class ScoreOptions(LensOption, ReadOptions, WeightOption, total=False):
    """What scores take."""


class ErrorCurveOptions(ScoreOptions, WorkOptions, total=False):
    """What curves of errors take, whose noise floors are drawn."""


class EventDesignOptions(EventOptions, DesignOptions, TimeOptions, total=False):
    """What estimates for an event take that know weights, groups and times."""


class CutoffOptions(EventOptions, DesignOptions, WorkOptions, total=False):
    """What intervals for an event take that know weights and groups, and draw signs."""


class LookOptions(LensOption, DataOptions, total=False):
    """What is looked at."""


class DesignedOptions(LookOptions, DesignOptions, total=False):
    """What estimates take that know weights and groups."""


class TimedOptions(DesignedOptions, TimeOptions, total=False):
    """What estimates take that know weights, groups and times."""


class LevelOptions(LookOptions, AlphaOption, total=False):
    """What tests take that draw nothing."""


class DiagramOptions(DesignedOptions, AlphaOption, total=False):
    """What diagrams take that show tests."""


class EstimateOptions(DesignedOptions, WorkOptions, total=False):
    """What estimates take that draw observations."""


class FloorOptions(InputOption, LensOption, NullOption, WorkOptions, total=False):
    """What noise floors take, which need no labels."""


def event_of(
    y_true: ArrayLike, y_prob: ArrayLike, options: Mapping[str, Any], of_many: LensLike = _CONFIDENCE
) -> tuple[Sample, dict[str, Any]]:
    """Return the sample of one probability and its lens: by default the event of two classes, ``of_many`` of more."""
    prob, outcome = validate_given_problem(y_true, y_prob, options["classes"])
    usual = Canonical() if prob.shape[1] == 2 else of_many
    sample, about = looked_at(prob, outcome, usual if options["lens"] is None else options["lens"], options)
    got = f"{describe(about['lens'])} with {sample.n_outcomes}"
    refuse_if(sample.n_outcomes != 2, f"`lens` must have two outcomes, such as Confidence(), got {got}.")
    return sample, about


def look_at(y_true: ArrayLike, y_prob: ArrayLike, options: Mapping[str, Any]) -> tuple[Sample, dict[str, Any]]:
    """Return the sample behind a lens, by default of the whole prediction, and what its result says of the lens."""
    look = Canonical() if options["lens"] is None else options["lens"]
    prob, outcome = validate_given_problem(y_true, y_prob, options["classes"])
    return looked_at(prob, outcome, look, options)


def look_for(
    statistic: Statistic | str | None, y_true: ArrayLike, y_prob: ArrayLike, options: Mapping[str, Any]
) -> tuple[Statistic, Sample, dict[str, Any]]:
    """Return an estimate, by default the ECE, the sample behind its lens, and what its result says of the lens."""
    chosen = validate_estimate(ECE() if statistic is None else statistic)
    prob, outcome = validate_problem(y_true, y_prob, options["classes"])
    look = default_lens(chosen, prob.shape[1]) if options["lens"] is None else options["lens"]
    return chosen, *looked_at(prob, outcome, look, options)


def looked_at(
    prob: NDArray[Any], outcome: Integers, look: LensLike, options: Mapping[str, Any]
) -> tuple[Sample, dict[str, Any]]:
    """Return the sample of validated predictions behind a lens, and what its result says of the lens."""
    weight, *others = (options.get(name) for name in ("sample_weight", "groups", "time", "lead"))
    design = validate_design(weight, others[0], len(prob), *others[1:])
    refuse_crossed(design)
    sample = induce(prob, outcome, lens=look, region=options.get("region"), **design)
    return sample, {"lens": look, "lens_name": lens_name(look, options["classes"])}
