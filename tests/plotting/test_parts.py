"""The forest plot of subgroups and of labels shows the numbers of the table."""

import numpy as np
import pytest

import caltest as ct
from caltest.plotting._axes import FINDING
from caltest.plotting._parts import save_parts

QUICK = {"n_resamples": 199, "rng": 0}


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(0)
    prob = rng.uniform(0.2, 0.8, (1000, 3))
    label = rng.random(prob.shape) < prob + np.array([0, 0.15, 0])
    site = np.where(np.arange(1000) % 2, "north", "south of the river, with a name that is far too long for a line")
    return ct.multilabel_table(label, prob, **QUICK), ct.subgroup_tests(label[:, 1], prob[:, 1], subgroup=site, **QUICK)


@pytest.mark.parametrize("which", [0, 1])
def test_the_picture_shows_averages_and_what_is_rejected(tables, which):
    ax = tables[which].plot()
    parts = tables[which].means()
    ticks = next(line for line in ax.lines if line.get_marker() == "|")
    np.testing.assert_allclose(ticks.get_xdata(), [100 * one["predicted"] for one in parts])
    filled = next(line for line in ax.lines if line.get_color() == FINDING)
    rejected = [(100 * one["observed"], row) for row, one in enumerate(parts) if one["rejected"]]
    np.testing.assert_allclose(filled.get_xydata(), rejected)
    assert len(rejected) == (1, 2)[which]
    assert " ".join(ax.get_title().split()) == tables[which].verdict.sentences(brief=True)[0]
    names = [" ".join(text.get_text().split()) for text in ax.get_yticklabels()]
    assert names == [f"{name} ({one['n_samples']:,})" for name, one in zip(tables[which].labels, parts, strict=True)]


@pytest.mark.slow(few_draws=True)
def test_of_many_segments_those_with_the_smallest_pvalues_are_drawn(tmp_path):
    rng = np.random.default_rng(1)
    prob = rng.uniform(0.2, 0.8, 600)
    columns = {name: rng.integers(0, 4, 600) for name in "uvw"}
    label = rng.random(600) < prob + 0.2 * (columns["u"] == 2)
    table = ct.subgroup_tests(label, prob, subgroup=columns, depth=2, statistic=ct.KS(), n_resamples=1199, rng=0)
    ax = table.plot()
    names = [" ".join(text.get_text().split()) for text in ax.get_yticklabels()]
    assert len(table) == 12 + 3 * 16
    assert names == [f"{table.subgroups[k]} ({table[k].n_samples})" for k in table.ranking[:25]]
    assert names[0].startswith("u=2")
    save_parts(table, tmp_path / "segments.png")
    assert (tmp_path / "segments.png").stat().st_size > 1000


def test_it_is_written_and_refuses_other_results(tables, tmp_path):
    save_parts(tables[0], tmp_path / "labels.png")
    assert (tmp_path / "labels.png").read_bytes()[1:4] == b"PNG"
    with pytest.raises(TypeError, match=r"`table` must be a PartsTable from subgroup_tests or multilabel_table"):
        ct.plotting.plot_parts(3)
