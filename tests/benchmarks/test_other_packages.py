"""The numbers of other packages: ours are computed on every run, theirs where the package is installed."""

import importlib.util
import math
from collections import Counter

import numpy as np
import pytest

import caltest
from benchmarks import other_packages
from tests.reference.cases import mostly_slow

ROWS = other_packages.rows()
IDS = [f"{row['package']}, {row['data']}, {row['theirs']}" for row in ROWS]


@pytest.fixture(scope="module")
def data():
    return other_packages.data_sets()


@pytest.mark.parametrize("row", mostly_slow((row,) for row in ROWS), ids=IDS)
def test_numbers_of_caltest_are_those_of_the_page(row, data):
    rel = 1e-6 if row["precision"] == "fit" else 1e-9  # where a solver stops depends on the processor
    for kind, (y, p) in data[row["data"]].items():
        found = other_packages.here(row, y, p)
        assert found == pytest.approx(float(row[f"here: {kind}"]), rel=rel, abs=1e-15, nan_ok=True), kind
        assert math.isnan(found) == (row["here"] == "")


def test_numbers_agree_where_the_page_says_so():
    wrong = {
        name: found
        for name, row in zip(IDS, ROWS, strict=True)
        if (found := [kind for kind in other_packages.KINDS if other_packages.same(row, kind)])
        != other_packages.agreed(row)
    }
    assert wrong == {}


@pytest.mark.parametrize("package", [name for name in other_packages.PACKAGES if name != "rms"])
def test_numbers_of_other_packages_are_those_of_the_page(package, data):
    modules = other_packages.PACKAGES[package]
    if any(importlib.util.find_spec(module.split(".")[0]) is None for module in modules):
        pytest.skip(f"{package}, which is compared with, is not installed")
    for row in ROWS:
        if row["package"] != package:
            continue
        y, p = data[row["data"]]["two decimals"]
        found, stored = other_packages.theirs(row, y, p), row["theirs: two decimals"]
        assert found == (stored if isinstance(found, str) else pytest.approx(float(stored), rel=1e-5)), row["theirs"]


def test_edges_of_torch_explain_what_differs(data):
    """As docs/other-packages.md says of predictions with two decimals."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed: pip install 'caltest[torch]'")
    import torch

    y, p = data["classes"]["two decimals"]
    partition = caltest.Edges([*torch.linspace(0, 1, 16)[1:-1].tolist(), np.nextafter(1, 0)])
    for norm, statistic in (("", caltest.ECE(partition)), (', norm="max"', caltest.MCE(partition))):
        call = f"multiclass_calibration_error(p, y, num_classes=10, n_bins=15{norm})"
        (stored,) = (float(row["theirs: two decimals"]) for row in ROWS if row["theirs"] == call)
        found = caltest.calibration_error(y, np.float32(p), lens=caltest.Confidence(), statistic=statistic)
        assert found == pytest.approx(stored, rel=1e-4)
        assert caltest.calibration_error(
            y, p, lens=caltest.Confidence(), statistic=type(statistic)(caltest.EqualWidth(15))
        ) != pytest.approx(stored, rel=1e-4)


def test_data_have_what_makes_packages_differ(data):
    for of_kind in data.values():
        plain, grid, ends = (p for _, p in of_kind.values())
        assert not np.isin(plain, [0, 1]).any()
        assert np.array_equal(grid, np.rint(100 * grid) / 100)
        assert {0.2, 0.3, 0.6, 0.7} <= set(grid.ravel())
        assert {0.0, 1.0} <= set(ends.ravel())
        assert all(p.ndim == 1 or np.allclose(p.sum(axis=1), 1, atol=1e-12) for p in (plain, grid, ends))


def test_rows_are_complete():
    assert max(Counter(IDS).values()) == 1
    assert {row["package"] for row in ROWS} == set(other_packages.PACKAGES)
    for name, row in zip(IDS, ROWS, strict=True):
        assert all(row[column] for column in ("version", "theirs", "why", "agree")), name
        assert row["why"].endswith("."), name
        assert row["precision"] in other_packages.PRECISIONS, name
        assert set(other_packages.agreed(row)) <= set(other_packages.KINDS), name
        assert "|" not in row["theirs"] + row["here"] + row["why"], name


def test_the_page_is_made_from_the_rows():
    """`python benchmarks/other_packages.py --page` writes it."""
    text = other_packages.PAGE.read_text()
    assert text == other_packages.with_tables(text, ROWS)
    for row in ROWS:
        assert f"| `{row['theirs']}` |" in text
        assert row["why"] in text
