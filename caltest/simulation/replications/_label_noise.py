"""How calibration errors react to wrong training labels (Nixon et al. 2019, appendix B)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.estimation.scores._scores import accuracy, mean_confidence
from caltest.hypothesis_tests._calibration import calibration_test
from caltest.predictions._arrays import Floats
from caltest.predictions.inputs._arguments import read_problem, reads_arguments
from caltest.predictions.inputs._validation import require, validate_count, validate_number, validate_problem
from caltest.resampling.engine._stopping import number_of_draws
from caltest.results._decision import rejects
from caltest.results._description import Description, percent
from caltest.results._picture import Picture
from caltest.simulation.studies._options import RunOptions
from caltest.simulation.studies._run import Part, identify, named, replicate_rng, run_study
from caltest.simulation.studies._study import Study, frame_table
from caltest.statistics import ACE, GCE, SCE, Statistic

if TYPE_CHECKING:
    import pandas as pd

Predict = Callable[[NDArray[Any]], ArrayLike]
_DESIGN = ["share", "labels", "test_statistic"]
_ALPHA = 0.05


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LabelNoiseStudy(Study):
    """Result of `label_noise_study`: metrics and p-values of models that were trained on partly random labels.

    Attributes
    ----------
    replicates : pandas.DataFrame
        One row for each share, replicate, kind of held-out labels ("clean": as they are, "noisy": the same share of
        them is random) and ``test_statistic`` (its name), with its value ``statistic``, its ``noise_floor`` and its
        ``pvalue``, and of the model ``accuracy``, ``mean_confidence`` and ``missed``, the share of the predictions
        above the threshold that are not the top one of their observation, so that they do not enter ECE.

    See Also
    --------
    label_noise_study : The study that returns it.

    Examples
    --------
    >>> import numpy as np
    >>> from caltest.simulation import label_noise_study
    >>> labels = np.arange(60) % 2
    >>> def base_rates(labels):
    ...     return np.tile(np.bincount(labels, minlength=2) / len(labels), (60, 1))
    >>> study = label_noise_study(base_rates, labels, labels, classes=[0, 1], shares=[0, 0.5], n_resamples=19, rng=0)
    >>> sorted(set(study.replicates["share"]))
    [0.0, 0.5]
    """

    replicates: pd.DataFrame

    _left_out: ClassVar[frozenset[str]] = frozenset({"replicates"})
    plot = Picture("plot_label_noise")

    def to_frame(self) -> pd.DataFrame:
        """Return means over the replicates, and the standard error of the value.

        Returns
        -------
        pandas.DataFrame
            One row for each share, kind of held-out labels and statistic; ``statistic_se`` is the standard error.
        """
        groups = self.replicates.drop(columns="replicate").groupby(_DESIGN, sort=False)
        frame = groups.mean().reset_index()
        frame.insert(len(_DESIGN) + 1, "statistic_se", groups["statistic"].sem().to_numpy())
        return frame

    @property
    def conclusion(self) -> str:
        """How often calibration is rejected on clean and on noisy labels, in words."""
        rejected = rejects(self.replicates["pvalue"], _ALPHA).groupby(self.replicates["labels"], sort=False).mean()
        return (
            f"At the {percent(_ALPHA)} level calibration is rejected in {100 * rejected['clean']:.0f} % of the tests "
            f"on clean held-out labels and in {100 * rejected['noisy']:.0f} % of those on held-out labels with the "
            "same share of noise."
        )

    def _describe(self) -> Description:
        frame = self.to_frame().drop(columns="statistic_se")
        heads = {name: name.replace("_", " ").replace("pvalue", "p-value") for name in frame.columns}
        return Description(
            f"Label noise study (means over {self.replicates['replicate'].nunique()} replicates)",
            [self.conclusion],
            [frame_table(frame, heads)],
            [
                "missed: share of the predictions above the threshold that are not the top one of their observation; "
                "they do not enter ECE."
            ],
        )


@reads_arguments
def label_noise_study(
    predict: Predict,
    y_train: ArrayLike,
    y_true: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    shares: Sequence[float] = tuple(np.linspace(0.0, 0.05, 40)),
    statistics: Statistic | Sequence[Statistic] | Mapping[str, Statistic] | None = None,
    threshold: float = 0.1,
    n_replicates: int = 1,
    n_resamples: int | None = None,
    **options: Unpack[RunOptions],
) -> LabelNoiseStudy:
    """Train models on labels of which a share is random, and compute calibration errors and p-values.

    This is the design of the paper: each training label is replaced with probability ``share`` by a class drawn
    uniformly from all, the right one included, and the model is trained again. A model that learns how often labels are
    wrong is calibrated for labels with the same share of noise and under-confident for labels without noise; a model
    that memorises wrong labels is not. Predictions are therefore evaluated twice, on the held-out labels as they are
    and on held-out labels with the same share of noise. Labels that are replaced at one share are replaced at all
    higher shares too.

    Parameters
    ----------
    predict : callable
        A function of training labels ``(n_train,)`` that trains a model and returns its predictions ``(n_samples,
        n_classes)`` of the held-out observations; the same labels should give the same predictions.
    y_train : array-like of shape (n_train,)
        Training labels without noise.
    y_true : array-like of shape (n_samples,)
        Labels of the held-out observations.
    classes : sequence, optional
        The label of each column of the predictions; by default the labels are class indices from 0, and every class
        must occur in ``y_train``.
    shares : sequence of float
        Shares of random labels, from 0 to 1; those of the paper by default.
    statistics : Statistic, sequence or mapping, optional
        The three of the paper by default: "ECE" and "SCE" with 15 cells, "ACE".
    threshold : float
        Predictions above it are important; 0.1 in the paper's figure (its text says 0.01).
    n_replicates : int
        Number of repetitions with other random labels.
    n_resamples : int, optional
        Number of draws of each test; 999 by default.
    workers : int
        Processes, or what ``joblib.parallel_config`` names; -1 for all processors. The answer does not depend on it.

    Returns
    -------
    LabelNoiseStudy
        All values and their means; ``plot()`` draws them.

    Raises
    ------
    TypeError
        If ``predict`` is not a function, ``statistics`` hold something else than statistics, or ``workers`` is not an
        integer.
    ValueError
        If a share or ``threshold`` is not in [0, 1], or ``n_replicates`` or ``n_resamples`` is < 1; if two statistics
        have the same name; if predictions do not fit the labels; if ``out`` holds another study.

    See Also
    --------
    caltest.simulation.metric_agreement : How far metrics agree on models.

    References
    ----------
    J. Nixon et al. (2019), Measuring calibration in deep learning, CVPR workshops, appendix B and figure 3.

    Examples
    --------
    This model predicts the frequencies of the training labels, which are all 0. Trained on random labels, it is
    calibrated for random labels only:

    >>> import numpy as np
    >>> from caltest.simulation import label_noise_study
    >>> def predict(labels):
    ...     return np.tile(np.bincount(labels, minlength=2) / len(labels), (200, 1))
    >>> labels = np.zeros(200, dtype=int)
    >>> study = label_noise_study(predict, labels, labels, classes=[0, 1], shares=[0, 1], n_resamples=99, rng=0)
    >>> study.to_frame().query("test_statistic == 'ECE'")[["share", "labels", "statistic", "pvalue"]].round(2)
       share labels  statistic  pvalue
    0    0.0  clean       0.00    1.00
    3    0.0  noisy       0.00    1.00
    6    1.0  clean       0.44    0.01
    9    1.0  noisy       0.06    0.17
    """
    require(callable(predict), "`predict` must be a function of training labels", predict, right_type=False)
    offered = _statistics() if statistics is None else statistics
    chosen = named(offered, "statistics", Statistic, "statistics such as ECE()")
    levels = [validate_number(share, "shares", 0.0, 1.0) for share in shares]
    train, held_out = (np.asarray(labels) for labels in (y_train, y_true))
    design = _Design(
        predict,
        train,
        held_out,
        tuple(np.unique(train)) if classes is None else tuple(classes),
        None if classes is None else tuple(classes),
        chosen,
        validate_number(threshold, "threshold", 0.0, 1.0),
        number_of_draws(n_resamples),
    )
    total = validate_count(n_replicates, "n_replicates")

    def parts(seed: int) -> list[Part]:
        return [
            Part(f"{design} {replicate} {share!r}", partial(design.run, seed, replicate, share))
            for replicate in range(total)
            for share in levels
        ]

    run = run_study("label-noise", parts, prefer="processes", **options)
    return LabelNoiseStudy(replicates=run)


def _statistics() -> dict[str, Statistic]:
    return {"ECE": GCE(max_prob=True, class_conditional=False), "SCE": SCE(), "ACE": ACE()}


@dataclass(frozen=True, eq=False)
class _Design:
    """Everything that all shares and replicates have in common."""

    predict: Predict
    y_train: NDArray[Any]
    y_true: NDArray[Any]
    drawn: tuple[Any, ...]
    classes: tuple[Any, ...] | None
    statistics: dict[str, Statistic]
    threshold: float
    n_resamples: int

    def run(self, seed: int, replicate: int, share: float) -> pd.DataFrame:
        """Return the rows of one replicate and share."""
        import pandas as pd

        rng = replicate_rng(seed, "label noise", replicate)  # the same at all shares
        noisy_train, noisy = (self._replace(labels, share, rng) for labels in (self.y_train, self.y_true))
        draw_seed = int(rng.integers(2**63))
        y_prob = self.predict(noisy_train)
        rows = []
        for kind, labels in (("clean", self.y_true), ("noisy", noisy)):
            read = read_problem({"y_true": labels}, {"y_prob": y_prob}, self.classes)
            prob, outcome = validate_problem(read.labels["y_true"], read.probs["y_prob"], read.classes)
            design = {"share": share, "replicate": replicate, "labels": kind}
            model = {
                "accuracy": accuracy(outcome, prob),
                "mean_confidence": mean_confidence(outcome, prob),
                "missed": self._missed(prob),
            }
            for name, statistic in self.statistics.items():
                found = calibration_test(
                    outcome, prob, statistic=statistic, n_resamples=self.n_resamples, rng=draw_seed
                )
                test = {"statistic": found.statistic, "noise_floor": found.noise_floor, "pvalue": found.pvalue}
                rows.append(design | {"test_statistic": name} | test | model)
        return pd.DataFrame(rows)

    def _replace(self, labels: NDArray[Any], share: float, rng: np.random.Generator) -> NDArray[Any]:
        """Return labels of which each is replaced, with probability ``share``, by a random class."""
        chance, other = rng.random(len(labels)), rng.integers(len(self.drawn), size=len(labels))
        return np.where(chance < share, np.asarray(self.drawn)[other], labels)

    def _missed(self, prob: Floats) -> float:
        important = (prob > self.threshold).sum()
        return float(1 - (prob.max(axis=1) > self.threshold).sum() / important) if important else np.nan

    def __str__(self) -> str:
        data = sha256(self.y_train.tobytes() + self.y_true.tobytes()).hexdigest()
        return identify((self.predict, data, self.drawn, self.statistics, self.threshold, self.n_resamples))
