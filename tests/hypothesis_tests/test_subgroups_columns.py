"""Subgroups that the columns of a file make."""

import numpy as np

import caltest as ct
from caltest.hypothesis_tests._subgroups import judge_levels, levels_of_columns


def test_levels_have_short_names_and_the_tests_of_subgroup_tests():
    rng = np.random.default_rng(0)
    prob, site, age = rng.random(200), rng.choice(["north", "south"], 200), rng.normal(60, 10, 200)
    y_true = (rng.random(200) < prob).astype(int)
    levels = levels_of_columns({"site": site, "age": age}, 2)
    assert list(levels["site"]) == ["site=north", "site=south"]
    assert np.array_equal(levels["site"]["site=north"], site == "north")
    assert sum(inside.sum() for inside in levels["age"].values()) == 200
    tests = judge_levels(y_true, prob, levels, n_resamples=99, rng=0)
    assert tests.subgroups == (*levels["site"], *levels["age"])
    same = ct.subgroup_tests(y_true, prob, subgroup=site, n_resamples=99, rng=0)
    assert [test.pvalue for test in tests][:2] == [test.pvalue for test in same]
