"""Errors of networks by binning scheme and lens: appendix D of Vaicenavicius et al. (2019), with floors and p-values.

``python benchmarks/binning.py`` writes ``docs/data/binning.csv`` and the table of
``docs/papers/vaicenavicius-2019.md`` in some minutes; ``--page`` writes the table from the data that is there.
"""

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # this checkout, whatever is installed

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

import caltest  # noqa: E402
from benchmarks.machine import commit  # noqa: E402
from benchmarks.markdown import table  # noqa: E402
from benchmarks.pages import mark, read, with_table  # noqa: E402
from caltest.resampling import correct_pvalues  # noqa: E402

SEED, N_RESAMPLES, ALPHA = 0, 9999, 0.05
STORED = ROOT.parent / "shared" / "data"
DATA = ROOT / "docs" / "data" / "binning.csv"
PAGE = ROOT / "docs" / "papers" / "vaicenavicius-2019.md"
NETWORKS = {
    "VGG-16": "cifar10_vgg16",
    "VGG-19-BN": "cifar10_vgg19_bn",
    "DenseNet-121": "cifar10_densenet121",
    "GoogLeNet": "cifar10_googlenet",
    "ResNet": "cifar10_resnet_orig",
}
"""10,000 test images of CIFAR-10 each; only VGG-16 is bundled."""
LENSES = {
    "whole prediction": caltest.Canonical(),
    "confidence": caltest.Confidence(),
    "two largest and the rest": caltest.TopK(2),
    "three groups of classes": caltest.ClassGroups([[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]]),
}
BINNINGS = {
    "equal width": caltest.EqualWidth(10),
    "tree, cut at the mean": caltest.VarianceTree(split="mean", min_split=100),
    "tree, cut at the median": caltest.VarianceTree(min_split=100),
}


def network(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and predictions of a network."""
    if name == "VGG-16":
        return caltest.datasets.load_cifar10_vgg16()
    with np.load(STORED / f"{NETWORKS[name]}.npz") as held:
        return held["labels"].astype(int), held["probs"]


def measured(name: str, lens: str, binning: str) -> dict[str, object]:
    """Return the error of a network, its noise floor, and the p-value, not yet adjusted."""
    test = caltest.calibration_test(
        *network(name), lens=LENSES[lens], statistic=caltest.ECE(BINNINGS[binning]), n_resamples=N_RESAMPLES, rng=SEED
    )
    numbers = {"error": test.statistic, "floor": test.noise_floor, "pvalue": test.pvalue}
    return {"lens": lens, "binning": binning, "network": name, **numbers}


def measure() -> pd.DataFrame:
    """Return all rows, with p-values adjusted by Holm's method for all of them."""
    frame = pd.DataFrame([measured(name, lens, one) for lens in LENSES for one in BINNINGS for name in NETWORKS])
    return frame.assign(adjusted=correct_pvalues(frame["pvalue"].to_numpy(), "holm"))


def shown(row: pd.Series) -> str:
    """Return error, floor and decision of a network."""
    return f"{row['error']:.4f} ({row['floor']:.4f}){'' if row['adjusted'] <= ALPHA else ' n.s.'}"


def of_data(frame: pd.DataFrame) -> str:
    """Return the table of the page: lenses and binning schemes by networks."""
    rows = [
        (f"{lens}, {binning}", *(shown(row) for _, row in group.iterrows()))
        for (lens, binning), group in frame.groupby(["lens", "binning"], sort=False)
    ]
    return table(("lens, binning scheme", *NETWORKS), rows)


def with_data(text: str, frame: pd.DataFrame) -> str:
    """Return the text of the page with its table made from the data."""
    return with_table(text, mark("binning"), of_data(frame))


def main() -> None:
    """Measure, and write data and table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", action="store_true", help="measure nothing: write the table from the data")
    if not parser.parse_args().page:
        facts = f"seed: {SEED}; commit: {commit()}; date: {datetime.now(UTC):%Y-%m-%d}; resamples: {N_RESAMPLES}"
        DATA.write_text(f"# {facts}\n" + measure().to_csv(index=False, float_format="%.6g"))
    PAGE.write_text(with_data(PAGE.read_text(), read(DATA.read_text())))


if __name__ == "__main__":
    main()
