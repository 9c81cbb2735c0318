"""Errors of networks by binning scheme: the data are those of another program and of the package, the table theirs."""

import pytest

from benchmarks import binning
from benchmarks.pages import mark, read
from caltest.resampling import correct_pvalues
from tests.reference.test_goldens import LENSES_BY_BINNING, NETWORKS

FRAME = read(binning.DATA.read_text())
WORDS = {
    **dict(zip(binning.LENSES, ("canonical", "max", "top2", "group3"), strict=True)),
    **dict(zip(binning.BINNINGS, ("uniform10", "tree_mean100", "tree_median100"), strict=True)),
}


def test_errors_are_those_of_the_other_program():
    assert len(FRAME) == 60
    for row in FRAME.itertuples():
        key = f"{WORDS[row.lens]}/{WORDS[row.binning]}"
        wanted = LENSES_BY_BINNING[key][NETWORKS.index(binning.NETWORKS[row.network])]
        assert row.error == pytest.approx(wanted, abs=2e-6), (key, row.network)


@pytest.mark.slow(few_draws=True)
def test_rows_of_the_bundled_network_are_measured_again():
    stored = FRAME.set_index(["lens", "binning", "network"])
    found = binning.measured("VGG-16", "confidence", "equal width")
    for name in ("error", "floor", "pvalue"):
        assert found[name] == pytest.approx(stored.loc[("confidence", "equal width", "VGG-16"), name], rel=1e-5), name


def test_the_sentences_of_the_page():
    """All p-values are adjusted together; the order of the errors depends on the cells, that of the excess does not."""
    assert correct_pvalues(FRAME["pvalue"].to_numpy(), "holm") == pytest.approx(FRAME["adjusted"].to_numpy(), rel=1e-4)
    kept = FRAME[FRAME["adjusted"] > binning.ALPHA]
    assert kept[["lens", "network"]].drop_duplicates().to_numpy().tolist() == [["three groups of classes", "GoogLeNet"]]
    assert len(kept) == 3
    whole = FRAME[FRAME["lens"] == "whole prediction"].assign(excess=FRAME["error"] - FRAME["floor"])
    orders = {
        what: [list(rows.sort_values(what)["network"]) for _, rows in whole.groupby("binning", sort=False)]
        for what in ("error", "excess")
    }
    assert [order.index("GoogLeNet") for order in orders["error"]] == [3, 0, 0]
    assert orders["excess"] == 3 * [["GoogLeNet", "DenseNet-121", "VGG-16", "VGG-19-BN", "ResNet"]]


def test_the_page_has_the_table_of_the_data():
    text = binning.PAGE.read_text()
    assert mark("binning") in text
    assert text == binning.with_data(text, FRAME)
