"""Objects show themselves as the code that makes them."""

import functools
import pickle
from dataclasses import dataclass, field

import numpy as np
import pytest

import caltest as ct
from caltest import hypothesis_tests, predictions, resampling, scorers, simulation, statistics, streaming
from caltest.resampling.draws._schemes import SignedGroups, TimedLabels
from caltest.results import ConfidenceInterval, Note
from caltest.results._naming import Specification, describe, parameter
from tests.reference import examples
from tests.reference.examples import ALL_PARTITIONS, LENSES, default_statistics, simple_statistics, subclasses

ROOMS = (predictions, resampling, statistics, hypothesis_tests, scorers, simulation, streaming)
NAMES = {name: getattr(room, name) for room in ROOMS for name in room.__all__}
USERS = {name: getattr(examples, name) for name in ("thirds", "hellinger", "reverse", "inner_product_kernel")}


def cubic(prob):
    """A user's calibration function."""
    return prob**3 / (prob**3).sum(axis=1, keepdims=True)


MIXTURE = simulation.GaussianMixture([0.5, 0.5], [-1.0, 1.0], [1.0, 1.0], [0, 1])
MODELS = [
    simulation.GaussianMixture1D(),
    simulation.GaussianMixture1D(0.5, -2),
    simulation.DirichletModel(3, [0.5, 1.0, 3.0], cubic),
    simulation.TrainedClassifier(simulation.RandomMixture(2, 3, seed=1), "naive Bayes", n_train=100),
    MIXTURE,
    simulation.BentPosterior(MIXTURE, simulation.Temperature(1.5)),
    simulation.LogisticModel(MIXTURE, 0.5, -2.0),
    *(
        simulation.DirichletModel(3, 0.7, truth)
        for truth in (
            simulation.Identity(), simulation.Temperature(1.3), simulation.Temperature((2, 0.5, 1)),
            simulation.Shift(1, -0.4), simulation.Move(2, 0, 0.3), simulation.LabelNoise(0.03),
            simulation.Favour(0, 0.5), simulation.Permutation(), simulation.Bumps(40),
        )
    ),
]  # fmt: skip
SCHEMES = [
    ct.Consistency(),
    ct.Consistency(resample_predictions=True),
    ct.Consistency(calibration_function=cubic),
    ct.resampling.LabelShift(0.1, 0.5),
    ct.resampling.LabelShift([0.2, 0.3, 0.5], [0.1, 0.8, 0.1]),
]


def specifications():
    """Examples of every class that names itself, with other parameters than the defaults too."""
    lenses = [lens for make in LENSES.values() for lens in make(4)]
    found = [*ALL_PARTITIONS, *lenses, *simple_statistics(), *default_statistics(), *MODELS, *SCHEMES]
    found += [hypothesis_tests.CoxLikelihoodRatio(part) for part in ("joint", "slope")]
    found += [scorers.neg_ece, scorers.NegativeError(statistics.ECE(), lens=predictions.Confidence())]
    found += [streaming.RedrawnCells(), streaming.RedrawnCells(predictions.EqualWidth(2), n_resamples=99, rng=1)]
    return [thing for thing in found if isinstance(thing, Specification)]


def test_repr_reads_back_as_code():
    for thing in specifications():
        text = repr(thing)
        assert " at 0x" not in text, text
        assert "\n" not in text, text
        assert text == str(thing) == describe(thing)
        back = eval(text, {**NAMES, **USERS, "cubic": cubic})
        assert back == thing, text
        assert hash(back) == hash(thing), text
        assert repr(back) == text


def test_every_specification_has_an_example():
    """Maps and mixtures are shown inside their model."""
    kinds = {type(thing) for thing in specifications()}
    inside = {type(model.truth) for model in MODELS if isinstance(model, simulation.DirichletModel)}
    named_by_the_user = {simulation.ResampledPredictions, simulation.RandomMixture}
    named_by_the_user.add(simulation.RecalibratedModel)  # holds a user's map
    by_options = {SignedGroups, TimedLabels}  # made by `groups=` and `time=`
    assert set(subclasses(Specification)) - kinds - inside == named_by_the_user | by_options


def test_predictions_of_a_model_are_not_printed():
    prob = np.random.default_rng(0).dirichlet(np.ones(5), 200)
    model = simulation.ResampledPredictions(prob, simulation.Temperature(1.5), name="digits")
    assert len(repr(model)) < 200
    assert "digits" in repr(model)
    assert " at 0x" not in repr(model)


def test_specifications_are_picklable():
    for thing in specifications():
        assert pickle.loads(pickle.dumps(thing)) == thing, repr(thing)


def test_parameters_at_their_defaults_are_left_out():
    assert repr(ct.ECE()) == "ECE()"
    assert repr(ct.ECE(ct.EqualWidth(15))) == "ECE(partition=EqualWidth(15))"
    assert repr(ct.statistics.GCE("equal-mass", norm="l2")) == "GCE(scheme='equal-mass', norm='l2')"
    assert repr(ct.ClassWise(3)) == "ClassWise(3)"


def test_classes_of_users():
    @dataclass(frozen=True, repr=False)
    class Mine(Specification):
        weights: np.ndarray
        parts: list = field(default_factory=list)
        hidden: int = field(default=1, repr=False)

    assert repr(Mine(np.arange(2))) == "Mine(array([0, 1]))"
    assert repr(Mine(np.arange(2), [ct.ECE()], 5)) == "Mine(array([0, 1]), parts=[ECE()])"

    class Plain(Specification):
        pass

    assert repr(Plain()) == "Plain()"


def test_parameters_are_checked_and_stored_as_the_check_returns_them():
    def positive(value, name):
        if value <= 0:
            msg = f"`{name}` must be positive, got {value}."
            raise ValueError(msg)
        return float(value)

    def anything(value, name):
        assert name == "other"

    @dataclass(frozen=True, repr=False)
    class Mine(Specification):
        width: float = parameter(1.0, positive)
        other: str = parameter("a", anything)

    assert repr(Mine()) == "Mine()"
    assert type(Mine(3).width) is float
    assert Mine(other="b").other == "b"
    with pytest.raises(ValueError, match=r"`width` must be positive, got 0\."):
        Mine(0)


def test_functions_classes_and_containers():
    def mine(prob):
        return prob

    for thing, text in [
        (mine, "mine"),
        (lambda prob: prob, "<lambda>"),
        (ct.ECE, "ECE"),
        (functools.partial(mine, 1, depth=ct.ECE()), "mine(1, depth=ECE())"),
        ((ct.ECE(), "a"), "[ECE(), 'a']"),
        ({"a": mine, 1: None}, "{'a': mine, 1: None}"),
        (ConfidenceInterval(0.1, 0.2), "ConfidenceInterval(low=0.1, high=0.2)"),
        (Note("C201", "x"), "Note(code='C201', text='x')"),
    ]:
        assert describe(thing) == text

    class Callable:
        def __call__(self, prob):
            return prob

    assert describe(Callable()) == "Callable"


def test_brief_names_leave_out_empty_parentheses():
    assert ct.KS().brief == "KS"
    assert ct.ECE(ct.EqualWidth(15)).brief == "ECE(partition=EqualWidth(15))"
    for statistic in (*simple_statistics(), *default_statistics()):
        assert statistic.brief == str(statistic).removesuffix("()")
