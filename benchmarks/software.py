"""Released software on the same work: ``pip install '.[bench]'``; what is absent is skipped with its reason.

A point estimate is compared with a point estimate. Where a package has no p-value, its estimate is used in the loop
that a user would write around it: simulate labels from the predictions, estimate again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

import caltest
from benchmarks import problems
from benchmarks.cases import CONFIDENCE, MASS, RESAMPLED, WIDE, ece
from benchmarks.loops.confidence import N_CELLS
from benchmarks.markdown import duration, ratio, table
from benchmarks.timing import costs

OWN_LOOP = "p-value; their estimate in a user's loop over simulated labels"


@dataclass(frozen=True)
class Comparison:
    """Two calls that answer one question; ``theirs`` and ``own`` take a number of resamples and return a number."""

    package: str
    question: str
    own: Callable[[int], float] | None
    theirs: Callable[[int], float]
    n_resamples: int | None = None
    """Of both; None if nothing is drawn."""


def section(n_resamples: int, repeats: int) -> str:
    """Return the table of all packages that are installed."""
    arrays = problems.images()
    rows, skipped = [], []
    for package, make in PACKAGES.items():
        try:
            installed = version(package)
            comparisons = make(*arrays, n_resamples)
        except (ImportError, PackageNotFoundError) as error:
            skipped.append(f"* {package} is left out: {error}.\n")
            continue
        for found in comparisons:
            if found.own is None:
                skipped.append(f"* {package}, {found.question}: this version of caltest has no such statistic.\n")
            else:
                rows.append(_row(found, f"{package} {installed}", repeats))
                print(*rows[-1], sep=" | ", flush=True)
    head = ("package", "question", "draws", "caltest", "theirs", "ratio", "value of caltest", "their value")
    return table(head, rows) + ("\n" + "".join(skipped) if skipped else "")


def _row(found: Comparison, package: str, repeats: int) -> tuple[str, ...]:
    runs = {"caltest": found.own, "theirs": found.theirs}
    if found.n_resamples is None:
        taken = costs({name: _often(run) for name, run in runs.items()}, 64, repeats, least=2)
        seconds = {name: cost.per_resample for name, cost in taken.items()}
        values = {name: f"{run(0):.6g}" for name, run in runs.items()}
    else:
        count = found.n_resamples
        taken = costs(runs, count, repeats, {"caltest": 3.0, "theirs": 1.0}, least=4)
        seconds = {name: cost.at(count) for name, cost in taken.items()}
        values = {name: f"{run(min(count, 99)):.4g}" for name, run in runs.items()}
    resamples = "none" if found.n_resamples is None else f"{found.n_resamples:,}"
    own, theirs = seconds["caltest"], seconds["theirs"]
    times = (duration(own), duration(theirs), ratio(theirs / own))
    return (package, found.question, resamples, *times, values["caltest"], values["theirs"])


def _often(run: Callable[[int], float]) -> Callable[[int], None]:
    """Return a function of how often to call."""

    def calls(count: int) -> None:
        for _ in range(count):
            run(0)

    return calls


def _estimate(y_true: Any, y_prob: Any, statistic: Any) -> Callable[[int], float] | None:
    if statistic is None:
        return None
    call = partial(caltest.calibration_error, y_true, y_prob, lens=CONFIDENCE, statistic=statistic)
    return lambda _: call()


def _pvalue(y_true: Any, y_prob: Any, **options: Any) -> Callable[[int], float] | None:
    if options["statistic"] is None:
        return None
    call = partial(caltest.calibration_test, y_true, y_prob, **{"lens": CONFIDENCE, "rng": 0, **options})
    return lambda n_resamples: call(n_resamples=n_resamples).pvalue


def _users_loop(y_true: Any, y_prob: Any, estimate: Callable[[Any, Any], float]) -> Callable[[int], float]:
    """Return the p-value that a user makes from an estimate of (confidence, correct)."""

    def pvalue(n_resamples: int) -> float:
        confidence, correct = _seen(y_true, y_prob)
        rng = np.random.default_rng(0)
        observed = estimate(confidence, correct)
        null = [estimate(confidence, (rng.random(len(correct)) < confidence).astype(int)) for _ in range(n_resamples)]
        return (1 + sum(value >= observed for value in null)) / (1 + n_resamples)

    return pvalue


def _seen(y_true: Any, y_prob: Any) -> tuple[Any, Any]:
    return y_prob.max(axis=1).astype(float), (y_prob.argmax(axis=1) == y_true).astype(int)


def _statistic(name: str, *arguments: Any, **options: Any) -> Any:
    """Return the statistic, None where this version has none."""
    known = getattr(caltest, name, None)
    return None if known is None else known(*arguments, **options)


def _ece(package: str, y_true: Any, y_prob: Any, n_resamples: int, *, theirs: Any, in_loop: Any) -> list[Comparison]:
    """Return the ECE of the confidence in 15 cells of equal width, and its p-value by a user's loop of estimates."""
    test = _pvalue(y_true, y_prob, statistic=caltest.ECE(WIDE), method="monte-carlo")
    loop = _users_loop(y_true, y_prob, in_loop)
    return [
        Comparison(
            package, "confidence ECE, 15 equal-width cells", _estimate(y_true, y_prob, caltest.ECE(WIDE)), theirs
        ),
        Comparison(package, f"the same, {OWN_LOOP}", test, loop, n_resamples),
    ]


def torchmetrics(y_true: Any, y_prob: Any, n_resamples: int) -> list[Comparison]:
    """ECE with equal-width cells."""
    import torch
    from torchmetrics.functional.classification import binary_calibration_error, multiclass_calibration_error

    torch.set_num_threads(1)
    target, predicted = torch.from_numpy(np.asarray(y_true).astype(np.int64)), torch.from_numpy(np.array(y_prob))

    def estimate(confidence, correct):
        tensors = torch.from_numpy(confidence), torch.from_numpy(correct)
        return float(binary_calibration_error(*tensors, n_bins=N_CELLS, norm="l1"))

    def whole(_):
        return float(multiclass_calibration_error(predicted, target, num_classes=10, n_bins=N_CELLS))

    return _ece("torchmetrics", y_true, y_prob, n_resamples, theirs=whole, in_loop=estimate)


def mapie(y_true: Any, y_prob: Any, n_resamples: int) -> list[Comparison]:
    """ECE, and Kolmogorov-Smirnov with an asymptotic p-value."""
    from mapie.metrics.calibration import expected_calibration_error, kolmogorov_smirnov_p_value

    def estimate(confidence, correct):  # `num_bins` edges, 0 and 1 included, are one cell fewer
        return expected_calibration_error(correct, confidence, num_bins=N_CELLS + 1, split_strategy="uniform")

    def kolmogorov_smirnov(_):
        confidence, correct = _seen(y_true, y_prob)
        return kolmogorov_smirnov_p_value(correct, confidence)

    return [
        *_ece(
            "mapie", y_true, y_prob, n_resamples, theirs=lambda _: estimate(*_seen(y_true, y_prob)), in_loop=estimate
        ),
        Comparison(
            "mapie",
            "KS of the confidence, p-value: a limit distribution there, simulated labels here",
            _pvalue(y_true, y_prob, statistic=caltest.KS()),
            kolmogorov_smirnov,
            n_resamples,
        ),
    ]


def relplot(y_true: Any, y_prob: Any, n_resamples: int) -> list[Comparison]:
    """Smooth ECE."""
    from relplot import smECE

    smooth = _statistic("SmoothECE")
    return [
        Comparison(
            "relplot",
            "smooth ECE of the confidence",
            _estimate(y_true, y_prob, smooth),
            lambda _: float(smECE(*_seen(y_true, y_prob))),
        ),
        Comparison(
            "relplot",
            f"the same, {OWN_LOOP}",
            _pvalue(y_true, y_prob, statistic=smooth),
            _users_loop(y_true, y_prob, lambda confidence, correct: float(smECE(confidence, correct))),
            n_resamples,
        ),
    ]


def uncertainty_calibration(y_true: Any, y_prob: Any, n_resamples: int) -> list[Comparison]:
    """ECE with equal-width cells, debiased l2 error and bootstrap with equal-mass cells."""
    import calibration

    label = np.asarray(y_true).astype(np.int64)
    return [
        Comparison(
            "uncertainty-calibration",
            "confidence ECE, 15 equal-width cells",
            _estimate(y_true, y_prob, caltest.ECE(WIDE)),
            lambda _: float(calibration.get_ece(y_prob, label)),
        ),
        Comparison(
            "uncertainty-calibration",
            "debiased l2 error (here its square), 15 equal-mass cells",
            _estimate(y_true, y_prob, _statistic("SquaredL2", MASS, estimator="kumar")),
            lambda _: float(calibration.get_calibration_error(y_prob, label, mode="top-label")) ** 2,
        ),
        Comparison(
            "uncertainty-calibration",
            "100 resamples of the observations, 15 equal-mass cells fitted again: upper end of a bootstrap interval "
            "there, p-value here",
            _pvalue(y_true, y_prob, **ece(MASS, CONFIDENCE, RESAMPLED)),
            lambda _: float(calibration.get_calibration_error_uncertainties(y_prob, label, p=1, mode="top-label")[2]),
            100,
        ),
    ]


def netcal(y_true: Any, y_prob: Any, n_resamples: int) -> list[Comparison]:
    """ECE of the confidence."""
    from netcal.metrics import ECE

    label, prob = np.asarray(y_true), np.asarray(y_prob, dtype=np.float64)

    def estimate(confidence, correct):
        return float(ECE(N_CELLS).measure(confidence, correct))

    def whole(_):
        return float(ECE(N_CELLS).measure(prob, label))

    return _ece("netcal", y_true, y_prob, n_resamples, theirs=whole, in_loop=estimate)


def scikit_learn(y_true: Any, y_prob: Any, n_resamples: int) -> list[Comparison]:
    """Scores of ten classes, and the curve of the confidence from which users make the ECE."""
    from sklearn.calibration import calibration_curve
    from sklearn.metrics import brier_score_loss, log_loss

    label, prob = np.asarray(y_true), np.asarray(y_prob, dtype=np.float64)
    prob = prob / prob.sum(axis=1, keepdims=True)
    edges = np.linspace(0, 1, N_CELLS + 1)

    def from_curve(confidence, correct):
        observed, predicted = calibration_curve(correct, confidence, n_bins=N_CELLS)
        count = np.histogram(confidence, edges)[0]
        return float(np.abs(observed - predicted) @ count[count > 0] / len(confidence))

    return [
        *_ece(
            "scikit-learn",
            y_true,
            y_prob,
            n_resamples,
            theirs=lambda _: from_curve(*_seen(y_true, y_prob)),
            in_loop=from_curve,
        ),
        Comparison(
            "scikit-learn",
            "Brier score of ten classes",
            lambda _: caltest.estimation.brier_score(label, prob),
            lambda _: float(brier_score_loss(label, prob)),
        ),
        Comparison(
            "scikit-learn",
            "log score of ten classes",
            lambda _: caltest.estimation.log_score(label, prob),
            lambda _: float(log_loss(label, prob)),
        ),
    ]


PACKAGES = {
    "uncertainty-calibration": uncertainty_calibration,
    "mapie": mapie,
    "relplot": relplot,
    "torchmetrics": torchmetrics,
    "netcal": netcal,
    "scikit-learn": scikit_learn,
}
