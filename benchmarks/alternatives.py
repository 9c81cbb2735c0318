"""Power against eight kinds of miscalibration and a permutation, and the alternatives of T-Cal."""

import argparse
import io
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path
from types import SimpleNamespace

import joblib
import numpy as np
import pandas as pd

import caltest
from benchmarks.candidates import candidates
from benchmarks.machine import ROOT, commit
from benchmarks.maps import MixedTemperature, SecondToThird, SineOfConfidence
from benchmarks.markdown import table
from caltest.predictions._sample import make_sample
from caltest.resampling.engine._pvalues import rank_pvalues
from caltest.simulation import (
    Bumps,
    DirichletModel,
    LabelNoise,
    Move,
    Permutation,
    PowerStudy,
    ResampledPredictions,
    Shift,
    Temperature,
    power_study,
    size_study,
)

SEED = 20190417
LEVEL = 0.05
N_RESAMPLES = 199
REPLICATES = 400
SKCE_SIZE = 500
"""SKCE, whose cost grows with the square of the sample size, is left out beyond."""
UNDER = "under-confident 1.2"
SINE = "sine of confidence"
BUMPS = "10 bumps of T-Cal"
PERMUTATION = "permutation"
TOP = caltest.Confidence()


def alternatives(n_classes: int) -> dict[str, object]:
    """Return the calibration functions that tests should detect, by name."""
    first = {
        "over-confident 1.2": Temperature(1.2),
        UNDER: Temperature(1 / 1.2),
        "class shifted": Shift(0, -0.5),
        "class moved": Move(0, 1, 0.3),
        "label noise": LabelNoise(0.03),
        "mixed by top class": MixedTemperature(1.3),
        SINE: SineOfConfidence(0.14),
    }
    if n_classes == 2:
        return first | {BUMPS: Bumps(10, 0.6, 40.0)}
    return first | {"second to third": SecondToThird(0.5), PERMUTATION: Permutation()}


def predictions() -> dict[str, tuple[object, int, tuple[int, ...]]]:
    """Return functions of the calibration function that make models, their number of classes, and sizes."""
    network = caltest.datasets.load_cifar10_vgg16()[1]
    return {
        "2 classes": (partial(DirichletModel, 2, 1.0), 2, (500, 2_000)),
        "3 classes": (partial(DirichletModel, 3, 0.3), 3, (500, 2_000)),
        "10 classes": (partial(DirichletModel, 10, 0.5), 10, (500, 2_000, 5_000)),
        "sharp network": (partial(ResampledPredictions, network, name="vgg16"), 10, (500, 2_000, 5_000)),
        "100 classes, sharp": (partial(DirichletModel, 100, 0.02), 100, (2_000,)),
    }


def confidence_test(y_true, y_prob, *, statistic, rng):
    """Test the confidence, or the event of two classes, whatever the lens of the study."""
    lens = caltest.Canonical() if np.shape(y_prob)[1] == 2 else TOP
    options = {"lens": lens, "statistic": statistic, "method": "monte-carlo", "n_resamples": N_RESAMPLES, "rng": rng}
    return caltest.calibration_test(y_true, y_prob, **options)


SINGLE = {
    "temperature score": caltest.TemperatureScore(),
    "class-wise KS": caltest.statistics.ClasswiseKS(),
    "tree ECE": caltest.ECE(),
    "confidence ECE 15": caltest.statistics.ConfidenceECE(),
}
"""Tests of single statistics that share the draws of `Omnibus`."""


@lru_cache(maxsize=1)
def shared_pvalues(known: "DataSet") -> dict[str, float]:
    """Return the p-values of `Omnibus` and of the single statistics from one run; each is that of a single test."""
    sample = make_sample(known.y_true, known.y_prob)
    parts = caltest.Omnibus().for_sample(sample).components
    more = tuple(part for part in SINGLE.values() if part not in parts)
    options = {"statistic": caltest.Omnibus((*parts, *more)), "n_resamples": N_RESAMPLES, "rng": known.seed}
    result = caltest.calibration_test(known.y_true, known.y_prob, **options)
    null = np.stack([part.null_distribution for part in result.components[: len(parts)]])
    observed = np.array([part.statistic for part in result.components[: len(parts)]])
    single = {part.test_statistic: part.pvalue for part in result.components}
    own = {name: single[statistic] for name, statistic in SINGLE.items()}
    return {"Omnibus": float(rank_pvalues(sample, observed, null)[1][0])} | own


@dataclass(frozen=True)
class DataSet:
    """Labels, predictions and the seed of the draws; two of them are equal if their arrays are the same objects."""

    y_true: np.ndarray
    y_prob: np.ndarray
    seed: int

    def __eq__(self, other):
        return self.y_true is other.y_true and self.y_prob is other.y_prob and self.seed == other.seed

    def __hash__(self):
        return hash(self.seed)


def shared_test(y_true, y_prob, *, name, rng):
    """Return a result with the p-value of one of the tests that share their draws."""
    return SimpleNamespace(pvalue=shared_pvalues(DataSet(y_true, y_prob, rng))[name])


def tests(n_samples: int, n_classes: int) -> dict[str, object]:
    """Return the tests of the tables."""
    chosen = {
        **{name: partial(shared_test, name=name) for name in ("Omnibus", *SINGLE)},
        "debiased l2, tree": caltest.SquaredL2(caltest.VarianceTree()),
        "confidence Kuiper": partial(confidence_test, statistic=caltest.statistics.Kuiper()),
        "confidence T-Cal": partial(confidence_test, statistic=caltest.statistics.TCal()),
        "matrix score": caltest.statistics.MatrixScore(),
        "SKCE": caltest.SKCE(),
    }
    slow = {"SKCE"} if n_samples > SKCE_SIZE else set()
    slow |= {"debiased l2, tree", "confidence T-Cal", "matrix score"} if n_classes > 30 else set()
    return {name: test for name, test in chosen.items() if name not in slow}


CURVES = {
    "power-temperature": (
        {"temperature, 10 classes": lambda t: DirichletModel(10, 0.5, Temperature(t))},
        (0.75, 0.85, 0.92, 1.0, 1.08, 1.15, 1.25),
        (500, 2_000),
        {"Omnibus": caltest.Omnibus(), "temperature score": caltest.TemperatureScore(), "tree ECE": caltest.ECE()},
    ),
    "power-bumps": (
        {
            "bumps, smoothness 0.6, by number": lambda m: DirichletModel(2, 1.0, Bumps(int(m))),
            "bumps, smoothness 1, by number": lambda m: DirichletModel(2, 1.0, Bumps(int(m), 1.0, 500.0)),
        },
        (40, 70, 100, 130, 160, 190),
        (10_000,),
        {
            "T-Cal": caltest.statistics.TCal(),
            "Omnibus": caltest.Omnibus(),
            "tree ECE": caltest.ECE(),
            "ECE 15": caltest.ECE(caltest.EqualWidth(15)),
            "KS": caltest.KS(),
        },
    ),
    "power-heights": (
        {"10 bumps by height (rho)": lambda rho: DirichletModel(2, 1.0, Bumps(10, 0.6, rho))},
        (5, 10, 15, 20, 30, 40),
        (2_000,),
        {
            "T-Cal": caltest.statistics.TCal(),
            "Omnibus": caltest.Omnibus(),
            "tree ECE": caltest.ECE(),
            "ECE 15": caltest.ECE(caltest.EqualWidth(15)),
        },
    ),
}


def measure(out: Path, replicates: int, choose=tests, only: str = "") -> pd.DataFrame:
    """Return one row for each kind of predictions, size, alternative and test."""
    frames = []
    for name, (make, n_classes, sizes) in predictions().items():
        for n in sizes:
            if only not in {"", name, f"{name}, n = {n}"}:
                continue
            models = {alternative: make(truth=truth) for alternative, truth in alternatives(n_classes).items()}
            folder = out / f"{name.replace(' ', '-').replace(',', '')}-{n}-{replicates}"
            options = {"levels": LEVEL, "n_resamples": N_RESAMPLES, "method": "monte-carlo", "rng": SEED}
            study = size_study(models, choose(n, n_classes), n, replicates, out=folder, progress=True, **options)
            frame = study.to_frame()[["model", "n_samples", "test", "rejections", "n_replicates"]]
            frame.insert(0, "predictions", name)
            frames.append(frame.rename(columns={"model": "alternative"}))
            print(f"{name}, n = {n:,}: done", flush=True)
    return pd.concat(frames, ignore_index=True)


def draw_curves(out: Path, replicates: int, images: Path, only: str = "") -> None:
    """Write a picture of every power curve, or of one."""
    for name, (families, amounts, sizes, chosen) in CURVES.items():
        if only not in {"", "curves", name}:
            continue
        study: PowerStudy = power_study(
            families,
            amounts,
            chosen,
            sizes,
            replicates,
            levels=LEVEL,
            n_resamples=N_RESAMPLES,
            method="monte-carlo",
            out=out / f"{name}-{replicates}",
            progress=True,
            rng=SEED,
        )
        study.plot().flat[0].figure.savefig(images / f"{name}.png", dpi=110)
        print(f"{name}: done", flush=True)


MADE_BY = {
    "2 classes": "`DirichletModel(2, 1.0)`",
    "3 classes": "`DirichletModel(3, 0.3)`",
    "10 classes": "`DirichletModel(10, 0.5)`",
    "sharp network": "the predictions of the bundled VGG-16 network, drawn with replacement",
    "100 classes, sharp": "`DirichletModel(100, 0.02)`",
}

HEAD = """# Which test detects what

This page shows how often each test detects a miscalibrated model. The numbers are the power at level {level:g}: the
share of {replicates} data sets that a test rejects, {n_resamples} draws each. The standard error of a single rate is at
most {se:.1g}, that of a mean of eight a third of it. Written by `python benchmarks/power.py --out DIR` from
[power.csv](power.csv) ({facts}).

* **Predictions**: {made_by}. Labels are drawn from a known map of the predictions, the truth.
* **Kinds of miscalibration**: over-confidence and under-confidence by temperature 1.2; one class shifted by -0.5
  logits; 30 % of one class moved to another; 3 % label noise; temperature 1.3 or 1 / 1.3, depending on the predicted
  class; a sine of height 0.14 and period 0.2 added to the confidence; and, for more than two classes, half of the
  second largest probability moved to the class of the third.
* Not counted in the means: the permutation of Example 1 of Vaicenavicius et al. (2019), and for two classes ten bumps
  of alternating sign, `Bumps(10, 0.6, 40)`, the alternatives of T-Cal (Lee et al. 2023).

Binned errors of the whole prediction have little power against under-confidence, because it makes labels vary less than
predicted. Under-confidence and errors of the confidence that change their sign have separate tables. **Bold** is the
largest number of a row; numbers within two standard errors of each other may differ by chance.
"""

TAIL = """## Power curves

Each point is a rate of 100 data sets, fewer than in the tables (`--only curves --replicates 100`).

Power by temperature; left of 1 the model is under-confident.

![Rejection rates against the temperature](images/power-temperature.png)

Power by the number of bumps (`Bumps`, two classes, the alternatives of T-Cal): the more bumps, the lower they are, and
the less of them remains in the averages of few cells (bins).

![Rejection rates against the number of bumps](images/power-bumps.png)

Power against ten bumps by their height.

![Rejection rates against the height of ten bumps](images/power-heights.png)
"""


def page(text: str) -> str:
    """Return the page that the data make."""
    first, _, rest = text.partition("\n")
    frame = pd.read_csv(io.StringIO(rest))
    frame["rate"] = frame["rejections"] / frame["n_replicates"]
    replicates = int(frame["n_replicates"].max())
    parts = [
        HEAD.format(
            level=LEVEL,
            replicates=replicates,
            se=0.5 / np.sqrt(replicates),
            facts=first.removeprefix("# ").replace(": ", " ").replace(";", ","),
            n_resamples=N_RESAMPLES,
            made_by="; ".join(MADE_BY[kind] for kind in dict.fromkeys(frame["predictions"])),
        ),
        "## Mean power over the kinds of miscalibration\n",
        _wide(frame[~frame["alternative"].isin((PERMUTATION, BUMPS))]),
        _summary(frame),
        "## Under-confidence by temperature 1.2\n",
        _wide(frame[frame["alternative"] == UNDER]),
        "## Errors of the confidence that change their sign\n",
        _wide(frame[frame["alternative"] == SINE]),
        "## Ten bumps, two classes\n",
        _wide(frame[frame["alternative"] == BUMPS]),
        *(part for name in dict.fromkeys(frame["predictions"]) for part in _single(frame, name)),
        TAIL,
    ]
    return "\n".join(parts)


def _summary(frame: pd.DataFrame) -> str:
    """Say how far `Omnibus` is from the best test, in the means and in single rows."""
    counted = frame[~frame["alternative"].isin((PERMUTATION, BUMPS))]
    mean = counted.groupby(["predictions", "n_samples", "test"])["rate"].mean().unstack("test")
    single = counted.set_index(["predictions", "n_samples", "alternative", "test"])["rate"].unstack("test")
    texts = []
    for rates, rows in ((mean, "means"), (single, "single rates")):
        behind = (rates.drop(columns="Omnibus").max(axis=1) - rates["Omnibus"]).round(9)
        near, worst = (behind <= 0.02).sum(), behind.max()
        lag = f"; the largest lag is {worst:.2f}" if worst > 0 else ""
        texts.append(f"in {near} of {len(behind)} {rows}{lag}")
    return (
        f"`Omnibus` is the best test, or at most 0.02 below the best one, {texts[0]}. It is so {texts[1]}: against a\n"
        "single kind of miscalibration the statistic that was made for it has more power.\n"
    )


def _wide(frame: pd.DataFrame) -> str:
    """Return a table of mean rates: predictions and sizes by tests; the largest of a row is bold."""
    names = list(dict.fromkeys(frame["test"]))
    mean = frame.groupby(["predictions", "n_samples", "test"], sort=False)["rate"].mean().unstack("test")[names]
    rows = [(f"{kind}, n = {n:,}", *_rates(rates)) for (kind, n), rates in mean.iterrows()]
    return table(("", *names), rows)


def _single(frame: pd.DataFrame, kind: str) -> list[str]:
    """Return the rates of every alternative, n by n, of one kind of predictions."""
    own = frame[frame["predictions"] == kind]
    names = list(dict.fromkeys(own["test"]))
    wide = own.set_index(["alternative", "n_samples", "test"])["rate"].unstack("test")[names]
    order = [(alternative, n) for alternative in dict.fromkeys(own["alternative"]) for n in own["n_samples"].unique()]
    rows = [(f"{alternative}, n = {n:,}", *_rates(wide.loc[(alternative, n)])) for alternative, n in order]
    return [f"## {kind.capitalize()}, each kind of miscalibration\n", table(("", *names), rows)]


def _rates(rates: pd.Series) -> list[str]:
    shown = ["" if np.isnan(rate) else f"{rate:.2f}" for rate in rates]
    best = max(filter(None, shown), default="")
    return [f"**{rate}**" if rate and rate == best else rate for rate in shown]


def main() -> None:
    """Measure what the command line asks for, and write data, page and pictures."""
    parser = argparse.ArgumentParser(description="Power of tests of calibration.")
    parser.add_argument(
        "--out", type=Path, help="folder of finished parts, which goes on where it stopped; new code needs a new one"
    )
    parser.add_argument("--replicates", type=int, default=REPLICATES, help="data sets (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=-1, help="processes (default: all processors)")
    parser.add_argument("--only", default="", help='a part such as "10 classes, n = 500" or "power-bumps"; no page')
    parser.add_argument("--candidates", action="store_true", help="print the candidates for the default instead")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the page from the data")
    parser.add_argument("--data", type=Path, default=ROOT / "docs" / "power.csv", help="data file")
    asked = parser.parse_args()
    if not asked.page:
        if asked.out is None:
            parser.error("--out DIR is needed to measure")
        measured = commit()
        images = asked.data.parent / "images"
        images.mkdir(exist_ok=True)
        with joblib.parallel_config(backend="loky", n_jobs=asked.workers):
            if asked.candidates:
                frame = measure(asked.out, asked.replicates, candidates, asked.only)
                print(_wide(frame.assign(rate=frame["rejections"] / frame["n_replicates"])))
                return
            if asked.only not in {"curves", *CURVES}:
                frame = measure(asked.out, asked.replicates, only=asked.only)
            if asked.only in {"", "curves", *CURVES}:
                draw_curves(asked.out, asked.replicates, images, asked.only)
        if asked.only:
            return
        about = f"# seed: {SEED}; commit: {measured}; date: {datetime.now(UTC):%Y-%m-%d}\n"
        asked.data.write_text(about + frame.to_csv(index=False))
    asked.data.with_suffix(".md").write_text(page(asked.data.read_text()))
    print(f"written: {asked.data.with_suffix('.md')}")
