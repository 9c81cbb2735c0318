"""Compare estimators of the calibration error as Posocco and Bonnefoy (2021) do: figure and data of the documentation.

``python benchmarks/approximation.py`` takes about 10 minutes of two cores for 108 models and writes ``docs/data/`` and
``docs/images/approximation*.png``; ``--mixtures 5 --train-sets 3 --replicates 200`` runs all 540 of the paper. Needs
scikit-learn, the extra ``study``. ``--out FOLDER`` keeps finished models there and goes on from them.
"""

import argparse
from itertools import product
from pathlib import Path

import matplotlib as mpl

from caltest.simulation import TrainedClassifier, approximation_study, posocco_mixtures
from caltest.simulation.models._trained import KINDS

DOCS = Path(__file__).parents[1] / "docs"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mixtures", type=int, default=3, help="of each size, at most the 5 of the paper")
    parser.add_argument("--train-sets", type=int, default=1, help="training sets of each mixture and classifier")
    parser.add_argument("--replicates", type=int, default=100, help="evaluation sets of each size")
    parser.add_argument("--holdout", type=int, default=100_000, help="observations for the true value")
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
    truths = study.models.drop_duplicates(["model", "setting", "truth"])
    kept = ["model", "setting", "truth", "true_value", "truth_error", "truth_floor"]
    truths[kept].to_csv(chosen.docs / "data" / "approximation-truths.csv", index=False, float_format="%.5g")
    mpl.use("Agg")
    for truth, name in (("level set", "approximation"), ("large sample", "approximation-large-sample")):
        study.plot(truth=truth).flat[0].figure.savefig(chosen.docs / "images" / f"{name}.png", dpi=110)


if __name__ == "__main__":
    main()
