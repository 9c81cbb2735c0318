"""Ranks of countries in PISA 2018 as the R package csranks prints them.

Scores, standard errors and printed results: danielwilhelm/R-CS-ranks, README and vignette "Inference for Ranks"
(csranks 1.3.0). There the set of the five best holds the countries whose simultaneous lower limit of the rank is at
most 5.
"""

import numpy as np
import pytest

from caltest.ranking._separation import Contributions

MATHEMATICS = """
Australia 491.3600 1.939833; Austria 498.9423 2.970999; Belgium 508.0703 2.262662; Canada 512.0169 2.357476;
Chile 417.4066 2.415888; Colombia 390.9323 2.989559; Czech Republic 499.4677 2.460662; Denmark 509.3984 1.735002;
Estonia 523.4146 1.743602; Finland 507.3014 1.967920; France 495.4076 2.320214; Germany 500.0438 2.647083;
Greece 451.3703 3.091228; Hungary 481.0826 2.319597; Iceland 495.1874 1.953083; Ireland 499.6329 2.198621;
Israel 463.0345 3.498563; Italy 486.5899 2.780046; Japan 526.9733 2.471475; Korea 525.9330 3.121394;
Latvia 496.1263 1.962767; Lithuania 481.1912 1.953282; Luxembourg 483.4215 1.097632; Mexico 408.8015 2.493226;
Netherlands 519.2310 2.632278; New Zealand 494.4897 1.705943; Norway 500.9638 2.219045; Poland 515.6479 2.602085;
Portugal 492.4874 2.684570; Slovak Republic 486.1649 2.555596; Slovenia 508.8975 1.363878; Spain 481.3926 1.462418;
Sweden 502.3877 2.654251; Switzerland 515.3147 2.908004; Turkey 453.5078 2.260407; United Kingdom 501.7699 2.564428;
United States 478.2447 3.235444
"""
BEST = {
    *("Belgium", "Canada", "Denmark", "Estonia", "Finland", "Japan", "Korea", "Netherlands", "Poland", "Slovenia"),
    *("Sweden", "Switzerland"),
}


@pytest.fixture(scope="module")
def countries():
    """Names, and p-values of "not better than", of independent means with these standard errors."""
    rows = [row.split() for row in MATHEMATICS.replace("\n", " ").split(";")]
    names = [" ".join(row[:-2]) for row in rows]
    score, error = np.array([row[-2:] for row in rows], dtype=float).T
    n_units = 6000
    noise = np.random.default_rng(0).standard_normal((n_units, len(names) + 1))
    noise[:, 0] = 1
    independent = np.linalg.qr(noise)[0][:, 1:].T  # of sum 0 and length 1, so that variances are those published
    share = np.full(n_units, 1 / n_units)
    adds = (score.mean() - score)[:, None] * share + error[:, None] * independent
    found = Contributions(adds, share, np.zeros((len(names), len(names))), np.ones(len(names), dtype=bool))
    return names, score, found.separate(1999, np.random.default_rng(1)).pvalue


def test_the_five_best_countries(countries):
    names, _, pvalues = countries
    for level, expected in ((0.95, BEST), (0.9, BEST - {"Sweden"})):
        lower = 1 + (pvalues <= 1 - level + 1e-12).sum(axis=0)
        assert {name for name, low in zip(names, lower, strict=True) if low <= 5} == expected


def test_the_united_kingdom_is_in_place_13_and_its_set_contains_that_of_its_rank_alone(countries):
    names, score, pvalues = countries
    place = names.index("United Kingdom")
    assert 1 + (score > score[place]).sum() == 13
    is_better = pvalues <= 0.05
    assert 1 + is_better[:, place].sum() <= 8
    assert len(names) - is_better[place].sum() >= 23
