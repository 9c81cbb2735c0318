"""Compare estimators of the calibration error as Posocco and Bonnefoy (2021) do: figure and data of the documentation.

``python benchmarks/approximation.py`` runs the 540 models of the paper in about 3 hours of processor time, and writes
``docs/data/approximation*.csv`` and ``docs/images/approximation*.png``. Needs scikit-learn, the extra ``study``.
``--out FOLDER`` keeps finished models there and goes on from them.
"""

import argparse
from itertools import product
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

from caltest.simulation import TrainedClassifier, approximation_study, posocco_mixtures
from caltest.simulation.models._trained import KINDS
from caltest.simulation.replications._approximation import _DESIGN, _drawn_distributions, _resampled
from caltest.simulation.studies._study import CLEAR

DOCS = Path(__file__).parents[1] / "docs"


def winners(study):
    """Return the best estimator of each setting and size, and those that are not distinguished from it.

    Medians of two estimators are told apart if they differ by more than `CLEAR` standard errors of the difference, by
    499 bootstrap samples of the distributions, the same for all estimators.
    """
    frame = study.models[study.models["truth"] == "level set"]
    found = frame.groupby(_DESIGN, sort=False)["error"].median()
    drawn = _resampled(frame, "error", np.median, _drawn_distributions(frame, 499, np.random.default_rng(0)))
    rows = []
    for key, medians in found.groupby(["setting", "truth", "n_samples"], sort=False):
        best = medians.idxmin()
        alike = [
            name[_DESIGN.index("estimator")]
            for name, value in medians.sort_values().items()
            if name != best and not value - medians[best] > CLEAR * (drawn[name] - drawn[best]).std(ddof=1)
        ]
        error = drawn[best].std(ddof=1)
        rows.append((key[0], key[2], best[_DESIGN.index("estimator")], medians[best], error, "; ".join(alike)))
    return pd.DataFrame(rows, columns=["setting", "n_samples", "best", "median", "median_se", "alike"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mixtures", type=int, default=5, help="of each size, at most the 5 of the paper")
    parser.add_argument("--train-sets", type=int, default=3, help="training sets of each mixture and classifier")
    parser.add_argument("--replicates", type=int, default=200, help="evaluation sets of each size")
    parser.add_argument("--holdout", type=int, default=2_000_000, help="observations for the true value")
    parser.add_argument("--out", type=Path, help="folder of finished parts")
    parser.add_argument("--workers", type=int, default=-1)
    parser.add_argument("--docs", type=Path, default=DOCS, help="where data and figures go")
    chosen = parser.parse_args()
    models = [
        TrainedClassifier(mixture, kind, seed=seed)
        for mixture, kind, seed in product(posocco_mixtures(), KINDS, range(chosen.train_sets))
        if mixture.seed < chosen.mixtures
    ]
    study = approximation_study(
        models,
        n_replicates=chosen.replicates,
        n_holdout=chosen.holdout,
        out=chosen.out,
        workers=chosen.workers,
        progress=True,
        rng=0,
    )
    (chosen.docs / "data").mkdir(exist_ok=True)
    study.to_frame().to_csv(chosen.docs / "data" / "approximation.csv", index=False, float_format="%.5g")
    winners(study).to_csv(chosen.docs / "data" / "approximation-winners.csv", index=False, float_format="%.4g")
    truths = study.models.drop_duplicates(["model", "setting", "truth"])
    kept = ["model", "setting", "truth", "true_value", "truth_error", "truth_floor"]
    truths[kept].to_csv(chosen.docs / "data" / "approximation-truths.csv", index=False, float_format="%.5g")
    mpl.use("Agg")
    for truth, name in (("level set", "approximation"), ("large sample", "approximation-large-sample")):
        study.plot(truth=truth).flat[0].figure.savefig(chosen.docs / "images" / f"{name}.png", dpi=110)


if __name__ == "__main__":
    main()
